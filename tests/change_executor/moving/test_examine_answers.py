"""What the examination makes of answers that Dovecot does not give: twins under two names, old rights, no MOVE."""

from __future__ import annotations

from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from change_executor.examine import examine_queues
from change_executor.journal.open import open_journal
from change_executor.looking import MailboxStatus, OpenedMailbox
from shared.settings import ConfigurationError
from tests.change_executor.journal.clock import MovableClock
from tests.change_executor.moving.workshop import settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shared.imap_login import ImapLogin


@dataclass
class _Server:
    """Says by mailbox what the test says; otherwise every mailbox is its own, empty and writable."""

    move: bool = True
    statuses: dict[str, MailboxStatus] = field(default_factory=dict)
    messages: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)
    claimed: dict[str, str] = field(default_factory=dict)
    read_only: set[str] = field(default_factory=set)
    uses: dict[str, frozenset[str]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    opened: str = ""

    def select(self, mailbox: str) -> OpenedMailbox:
        self.opened = mailbox
        return OpenedMailbox(1, 1, mailbox in self.read_only, self.ids.get(mailbox))

    def examine(self, mailbox: str) -> OpenedMailbox:
        return self.select(mailbox)

    def status(self, mailbox: str) -> MailboxStatus:
        return self.statuses.get(mailbox, MailboxStatus(1, 1, 0))

    def first_messages(self, count: int) -> list[tuple[int, int, str]]:
        return self.messages.get(self.opened, [])[:count]

    def special_uses(self) -> dict[str, frozenset[str]]:
        return self.uses

    def rights(self, mailbox: str) -> frozenset[str] | None:
        return frozenset(self.claimed[mailbox]) if mailbox in self.claimed else None

    def has_capability(self, name: str) -> bool:
        return self.move or name != "MOVE"

    @contextmanager
    def session(self, login: ImapLogin, mailboxes: frozenset[str]) -> Iterator[_Server]:
        assert login.id in {"move", "another"}
        assert {"Incoming", "Watched"} & mailboxes
        yield self


def _examined(folder: Path, server: _Server, **queue: Any) -> bool:
    settings = settings_for(folder, 143, "secret", queue=queue)
    journal = open_journal(settings.journal.url, MovableClock())
    try:
        (examination,) = examine_queues(settings, server.session, journal)
    finally:
        journal.close()
    return examination.undo_permitted


def test_without_move_the_start_ends_with_a_plain_explanation(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="RFC 6851"):
        _examined(tmp_path, _Server(move=False))


SAME = [(1, 100, "2026-01-01T00:00:00+00:00"), (2, 200, "2026-01-02T00:00:00+00:00")]


def test_one_mailbox_id_under_two_names_is_one_mailbox(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="same mailbox as `Incoming`"):
        _examined(tmp_path, _Server(ids={"Incoming": "F1", "Escalate": "F1"}))


def test_a_destination_that_another_queue_watches_under_another_name_is_refused(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, 143, "secret")
    first = settings.queues[0]
    there = {"done": first.to["processed"].model_copy(update={"mailbox": "Done"})}
    second = first.model_copy(update={"id": "second", "incoming": "Watched", "to": there})
    settings = settings.model_copy(update={"queues": (first, second)})
    with closing(open_journal(settings.journal.url, MovableClock())) as journal:
        with pytest.raises(ConfigurationError, match="`incoming` of the queue `second`"):
            examine_queues(settings, _Server(ids={"Processed": "F1", "Watched": "F1"}).session, journal)
        assert 2 == len(examine_queues(settings, _Server().session, journal))


@pytest.mark.parametrize(
    ("host", "refused"), [("127.0.0.1", True), ("mail.example.org", False)], ids=["one server", "another server"]
)
def test_a_destination_that_another_login_watches_under_another_name_is_refused(
    tmp_path: Path, host: str, *, refused: bool
) -> None:
    settings = settings_for(tmp_path, 143, "secret")
    first, login = settings.queues[0], settings.credentials[0]
    there = {"done": first.to["processed"].model_copy(update={"mailbox": "Done"})}
    second = first.model_copy(update={"id": "second", "credential": "another", "incoming": "Watched", "to": there})
    another = login.model_copy(update={"id": "another", "user": "another", "host": host})
    settings = settings.model_copy(update={"queues": (first, second), "credentials": (login, another)})
    server = _Server(ids={"Processed": "F1", "Watched": "F1"})
    told = pytest.raises(ConfigurationError, match="`incoming` of the queue `second`") if refused else nullcontext()
    with closing(open_journal(settings.journal.url, MovableClock())) as journal, told:
        examine_queues(settings, server.session, journal)


def test_the_same_uidvalidity_and_the_same_first_messages_are_one_mailbox(tmp_path: Path) -> None:
    twins = {name: MailboxStatus(7, 3, 2) for name in ("Processed", "Escalate")}
    with pytest.raises(ConfigurationError, match="same mailbox as `Processed`"):
        _examined(tmp_path, _Server(statuses=twins, messages={"Processed": SAME, "Escalate": SAME}))


@pytest.mark.parametrize(
    "server",
    [
        _Server(
            statuses={name: MailboxStatus(1, 3, 2) for name in ("Incoming", "Processed")},
            messages={"Incoming": SAME, "Processed": SAME},
            ids={"Incoming": "F1", "Processed": "F2"},
        ),
        _Server(
            statuses={name: MailboxStatus(7, 3, 2) for name in ("Incoming", "Processed")},
            messages={"Incoming": SAME, "Processed": [(1, 101, SAME[0][2]), SAME[1]]},
        ),
        _Server(),
    ],
    ids=["other mailbox ids", "other messages", "empty"],
)
def test_mailboxes_that_differ_may_share_a_uidvalidity(tmp_path: Path, server: _Server) -> None:
    assert _examined(tmp_path, server)


@pytest.mark.parametrize(
    ("mailbox", "use"),
    [
        *(("Away", "\\trash"), ("Away", "\\junk"), ("Away", "\\all"), ("INBOX.Spam", ""), ("[Gmail]/All Mail", "")),
        # INBOX is the same in any case, and what lies below it to most servers too.
        ("inbox/Away", "\\trash"),
        # Exchange tells no use of a mailbox, and names it in the language of its owner.
        *(
            (name, "")
            for name in ("Gelöschte Elemente", "INBOX.Éléments supprimés", "Junk-E-Mail", "Корзина", "垃圾邮件")
        ),
    ],
)
def test_a_trap_is_known_by_its_use_or_by_its_name(tmp_path: Path, mailbox: str, use: str) -> None:
    listed = mailbox.replace("inbox", "INBOX")
    with pytest.raises(ConfigurationError, match="Give the role an ordinary mailbox"):
        _examined(tmp_path, _Server(uses={listed: frozenset({use})}), to={"away": {"mailbox": mailbox}})
    # Spelled out, it may be one all the same.
    dangerous = {"away": {"mailbox": mailbox, "dangerous": True}}
    assert _examined(tmp_path, _Server(uses={listed: frozenset({use})}), to=dangerous)


@pytest.mark.parametrize(
    ("claimed", "lossy"),
    [("lrswi", ()), ("lrswite", ()), ("lri", ("Processed",)), ("lrwi", ("Processed",)), ("lrsi", ("Processed",))],
)
def test_a_destination_in_which_flags_would_be_lost_is_named(
    tmp_path: Path, claimed: str, lossy: tuple[str, ...]
) -> None:
    settings = settings_for(tmp_path, 143, "secret")
    journal = open_journal(settings.journal.url, MovableClock())
    (examination,) = examine_queues(settings, _Server(claimed={"Processed": claimed}).session, journal)
    journal.close()
    assert lossy == examination.lossy


@pytest.mark.parametrize(
    ("incoming", "destination", "read_only", "permitted"),
    [
        ("lrswite", "lrswite", set(), True),
        ("lrte", "lrswite", set(), False),
        ("lrswite", "lrswi", set(), False),
        ("lrswite", "lrswit", set(), False),
        ("lrswite", "lrswie", set(), False),
        # RFC 4314 §2.1.1: a server from before 2005
        ("lrswipcda", "lrswipcda", set(), True),
        ("lrswite", "lrswite", {"Processed"}, False),
    ],
)
def test_undo_needs_rights_both_ways(
    tmp_path: Path, incoming: str, destination: str, read_only: set[str], *, permitted: bool
) -> None:
    claimed = {"Incoming": incoming, "Processed": destination, "Escalate": destination}
    assert permitted == _examined(tmp_path, _Server(claimed=claimed, read_only=read_only))
