"""Any sequence of what sync may do leaves what JMAP shows as a plain model has it."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_reader.query import email_query, mailbox_get, parse_email_query
from agent_reader.store.emails import keywords_of
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, listed

NAMES = ("INBOX", "Archive", "Work")
LETTERS = [
    letter(f"text{number % 3} all", subject=f"S{number % 2}", headers={"Message-ID": f"<{number % 4}@x>"})
    for number in range(6)
]
LETTERS[0] = LETTERS[0].replace(b"text0", b"textzero")
FLAGS = st.frozensets(st.sampled_from(["\\Seen", "\\Deleted", "\\Draft", "Label", "\\Recent"]), max_size=3)


class MirrorMachine(RuleBasedStateMachine):
    """`copies` is the truth: (mailbox, uid) → (letter, flags); `held` what is shown of Emails without a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.account = Mirrored(self.folder)
        self.account.begin(*NAMES)
        self.copies: dict[tuple[str, int], tuple[int, frozenset[str]]] = {}
        self.held: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self.uid = 0
        self.uidvalidity = 5000
        self.selectable = set(NAMES)

    def teardown(self) -> None:
        self.account.store.close()
        shutil.rmtree(self.folder)

    @rule(data=st.data(), numbers=st.lists(st.integers(0, 5), min_size=1, max_size=4), flags=FLAGS)
    def add(self, data: st.DataObject, numbers: list[int], flags: frozenset[str]) -> None:
        name = data.draw(st.sampled_from(sorted(self.selectable)))
        messages = []
        for number in numbers:
            self.uid += 1
            messages.append(fetched(self.uid, LETTERS[number], flags=sorted(flags)))
            self.copies[name, self.uid] = (number, flags)
            self.held.pop(number, None)
        self.account.add(name, *messages)

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), flags=FLAGS)
    def flag(self, data: st.DataObject, flags: frozenset[str]) -> None:
        name, uid = data.draw(st.sampled_from(sorted(self.copies)))
        self.copies[name, uid] = (self.copies[name, uid][0], flags)
        self.account.flag(name, uid, *flags)

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        name, uid = data.draw(st.sampled_from(sorted(self.copies)))
        self._lose([(name, uid)])
        self.account.vanish(name, uid)

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), number=st.integers(0, 5))
    def replace(self, data: st.DataObject, number: int) -> None:
        """A server that gives a UID twice."""
        name, uid = data.draw(st.sampled_from(sorted(self.copies)))
        self._lose([(name, uid)])
        self.copies[name, uid] = (number, frozenset())
        self.held.pop(number, None)
        self.account.add(name, fetched(uid, LETTERS[number]))

    @rule(listing=st.dictionaries(st.sampled_from(NAMES[1:]), st.booleans()))
    def list_anew(self, listing: dict[str, bool]) -> None:
        """Mailboxes come, go, and can be selected or not."""
        selectable = {"INBOX", *(name for name, can_be in listing.items() if can_be)}
        self._lose([place for place in self.copies if place[0] not in selectable])
        shown = [listed(name, *([] if can_be else ["\\Noselect"])) for name, can_be in listing.items()]
        self.account.put_listing(listed("INBOX"), *shown)
        for mailbox in self.account.mirror.mailboxes():
            if mailbox.selectable and mailbox.uidvalidity is None:
                self.uidvalidity += 1
                self.account.mirror.restart(mailbox.id, self.uidvalidity)
        self.selectable = selectable

    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.selectable)))
        self.uidvalidity += 1
        self._lose([place for place in self.copies if place[0] == name])
        self.account.mirror.restart(self.account.handle(name), self.uidvalidity)

    @rule()
    def end_round(self) -> None:
        self.held.clear()
        self.account.end_round()

    @rule()
    def reopen(self) -> None:
        self.account.reopen()

    def _lose(self, places: list[tuple[str, int]]) -> None:
        shown = self._shown()
        lost = {self.copies.pop(place)[0] for place in places}
        for number in lost - {number for number, _ in self.copies.values()}:
            if number in shown:
                self.held[number] = shown[number]

    def _shown(self) -> dict[int, tuple[frozenset[str], frozenset[str]]]:
        """Letter → its mailboxes and keywords."""
        shown: dict[int, tuple[frozenset[str], frozenset[str]]] = dict(self.held)
        for (name, _), (number, flags) in self.copies.items():
            if "\\Deleted" not in flags:
                mailboxes, keywords = shown.get(number, (frozenset[str](), frozenset[str]()))
                shown[number] = (mailboxes | {name}, keywords | keywords_of(flags))
        return shown

    @invariant()
    def what_is_shown_is_what_the_model_has(self) -> None:
        shown = {id_of(LETTERS[number]): value for number, value in self._shown().items()}
        with self.account.store.snapshot(ACCOUNT) as snapshot:
            names = {mailbox.id: mailbox.name for mailbox in snapshot.mailboxes()}
            found = email_query(snapshot, parse_email_query({"calculateTotal": True}))
            emails = snapshot.emails(found.ids)
            assert shown == {
                email.id: (frozenset(names[each] for each in email.mailbox_ids), frozenset(email.keywords))
                for email in emails.values()
            }
            assert found.total == len(shown)
            for filter_, expected in (
                ({"text": "all"}, set(shown)),
                ({"hasKeyword": "$seen"}, {each for each, (_, keywords) in shown.items() if "$seen" in keywords}),
                ({"notKeyword": "label"}, {each for each, (_, keywords) in shown.items() if "label" not in keywords}),
            ):
                assert set(email_query(snapshot, parse_email_query({"filter": filter_})).ids) == expected
            totals = Counter(name for mailboxes, _ in shown.values() for name in mailboxes)
            for mailbox in mailbox_get(snapshot).list:
                in_it = {"inMailbox": mailbox["id"]}
                for query in ({"filter": in_it}, {"filter": {**in_it, "text": "all"}}):
                    asked = parse_email_query({**query, "calculateTotal": True})
                    assert email_query(snapshot, asked).total == mailbox["totalEmails"] == totals[str(mailbox["name"])]
                collapsed = parse_email_query({"filter": in_it, "calculateTotal": True, "collapseThreads": True})
                assert email_query(snapshot, collapsed).total == mailbox["totalThreads"]

    @invariant()
    def the_changes_lead_from_nothing_to_what_is_shown(self) -> None:
        there: set[tuple[str, str]] = set()
        for place, kinds in self.account.changes_since("x-0").items():
            for kind in kinds:
                assert (place in there) is (kind != "created")
                if kind == "created":
                    there.add(place)
                elif kind == "destroyed":
                    there.remove(place)
        shown = {("Email", id_of(LETTERS[number])) for number in self._shown()}
        assert shown == {place for place in there if place[0] == "Email"}
        with self.account.store.snapshot(ACCOUNT) as snapshot:
            threads = {email.thread_id for email in snapshot.emails(each for _, each in shown).values()}
        assert threads == {each for data_type, each in there if data_type == "Thread"}


TestMirrorMachine = MirrorMachine.TestCase
TestMirrorMachine.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    # Making a failing sequence shorter takes minutes; whoever looks into one turns it on.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
