"""Whatever an owner does, and wherever the reader is killed: the mirror becomes the server, and its states tell how.

The ordinary run is short; `make mirror-long` sets MIRROR_RUNS and MIRROR_STEPS.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.agent_reader.mirror_world import (
    DovecotOwner,
    Killed,
    Mirror,
    Owner,
    View,
    WorldOwner,
    check_changes,
    check_equal,
)
from tests.agent_reader.mirrored import letter
from tests.fakes.accounts import plain_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.imap_world import CONDSTORE, LISTING_STATUS, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.dovecot import Dovecot

RUNS = int(os.environ.get("MIRROR_RUNS", "30"))
STEPS = int(os.environ.get("MIRROR_STEPS", "8"))
IS_LONG = "MIRROR_RUNS" in os.environ

# Dovecot lists the parent of a mailbox as well, as one that does not exist; the tree has tests of its own.
FLAT_NAMES = ("Work", "Büro", "Later", "Work & Later")
NEW_NAMES = ("Work", "Work/Old", *FLAT_NAMES[1:])
# Three Threads, one of them by a message that refers to two; the same subject twice without a reference.
LETTERS = [
    letter("one", subject="Order", headers={"Message-ID": "<1@x>"}),
    letter("two", subject="Re: Order", headers={"Message-ID": "<2@x>", "In-Reply-To": "<1@x>"}),
    letter("three", subject="Order", headers={"Message-ID": "<3@x>"}),
    letter("four", subject="AW: Order", headers={"Message-ID": "<4@x>", "References": "<3@x> <1@x>"}),
    letter("five", subject="Other", headers={"Message-ID": "<5@x>", "References": "<1@x>"}),
    letter("six", subject="Order"),
]
FLAGS = st.frozensets(st.sampled_from(["\\Seen", "\\Flagged", "\\Deleted", "Label"]), max_size=2)
# A round of a few mailboxes makes some dozen calls.
CALLS = st.integers(0, 40)
PLACE = st.integers(0, 60)
# A client seldom remembers more than its last states, and each is compared after each settling.
_REMEMBERED = 4


class WorldMachine(RuleBasedStateMachine):
    """`owner` changes, `mirror` follows; `seen` are views that a client may ask from."""

    begin: Callable[[WorldMachine], tuple[Owner, Mirror]]
    end: Callable[[Owner], None] = staticmethod(lambda _: None)
    names: tuple[str, ...] = NEW_NAMES

    def __init__(self) -> None:
        super().__init__()
        self.owner, self.mirror = type(self).begin(self)
        # Something is there from the start, so that a short run does not spend itself on making it.
        for name in self.names[:2]:
            self.owner.create(name)
        for number, octets in enumerate(LETTERS):
            self.owner.deliver(("INBOX", *self.names[:2])[number % 3], octets, frozenset())
        self.mirror.settle()
        self.seen: list[View] = [self.mirror.view()]

    def teardown(self) -> None:
        with contextlib.ExitStack() as stack:
            # Whatever fails, the next run finds the server empty.
            stack.callback(type(self).end, self.owner)
            stack.callback(self.mirror.close)
            self.check(limit=3)

    # What is drawn are numbers, taken modulo what there is: a server's timing must not change what is drawn next.

    @rule(place=PLACE, number=st.integers(0, len(LETTERS) - 1), flags=FLAGS)
    def deliver(self, place: int, number: int, flags: frozenset[str]) -> None:
        self.owner.deliver(self._name(place), LETTERS[number], flags)

    @rule(message=PLACE, place=PLACE)
    def move(self, message: int, place: int) -> None:
        for name, uid in self._message(message):
            self.owner.move(name, uid, self._name(place, but=name))

    @rule(message=PLACE, flags=FLAGS)
    def flag(self, message: int, flags: frozenset[str]) -> None:
        for name, uid in self._message(message):
            self.owner.flag(name, uid, flags)

    @rule(message=PLACE)
    def expunge(self, message: int) -> None:
        for name, uid in self._message(message):
            self.owner.expunge(name, uid)

    @rule(place=PLACE, new_place=PLACE, kind=st.sampled_from(["create", "create", "rename", "delete"]))
    def rearrange(self, place: int, new_place: int, kind: str) -> None:
        names = set(self.owner.content())
        # A mailbox goes with those below it on most servers: only those without any are touched.
        ours = sorted(
            each for each in names & set(self.names) if not any(name.startswith(each + "/") for name in names)
        )
        free = sorted(set(self.names) - names)
        if kind == "create" and free:
            self.owner.create(free[new_place % len(free)])
        elif kind == "rename" and ours and free:
            self.owner.rename(ours[place % len(ours)], free[new_place % len(free)])
        elif kind == "delete" and ours:
            self.owner.delete(ours[place % len(ours)])

    @rule(place=PLACE)
    def reset(self, place: int) -> None:
        names = set(self.owner.content())
        ours = sorted(
            each for each in names & set(self.names) if not any(name.startswith(each + "/") for name in names)
        )
        if ours:
            self.owner.reset(ours[place % len(ours)])

    @rule(call=CALLS)
    def be_killed(self, call: int) -> None:
        def die() -> None:
            raise Killed

        self.mirror.round(call, die)

    @rule(call=CALLS, message=PLACE, place=PLACE)
    def move_while_looked_at(self, call: int, message: int, place: int) -> None:
        for name, uid in self._message(message):
            target = self._name(place, but=name)
            self.mirror.round(call, partial(self.owner.move, name, uid, target))

    @rule(call=CALLS, place=PLACE, number=st.integers(0, len(LETTERS) - 1))
    def deliver_while_looked_at(self, call: int, place: int, number: int) -> None:
        self.mirror.round(call, partial(self.owner.deliver, self._name(place), LETTERS[number], frozenset()))

    @rule()
    def look(self) -> None:
        self.mirror.round()
        self.seen.append(self.mirror.view())

    @rule(limit=st.integers(1, 9))
    def check(self, limit: int) -> None:
        self.mirror.settle()
        now = self.mirror.view()
        check_equal(now, self.owner.content())
        for before in self.seen:
            check_changes(self.mirror, before, now, limit)
        self.seen = [*self.seen, now][-_REMEMBERED:]

    def _name(self, place: int, but: str = "") -> str:
        names = sorted(set(self.owner.content()) - {but})
        return names[place % len(names)]

    def _message(self, number: int) -> list[tuple[str, int]]:
        """One message, or none where there is none."""
        places = sorted((name, uid) for name, messages in self.owner.content().items() for uid in messages)
        return [places[number % len(places)]] if places else []


def run(
    begin: Callable[[Any], tuple[Owner, Mirror]], end: Callable[[Owner], None], names: tuple[str, ...], share: int
) -> None:
    """`share` tenths of all runs, with mailboxes of these names besides those that are there."""
    machine: Any = type("Machine", (WorldMachine,), {"begin": begin, "end": staticmethod(end), "names": names})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(1, RUNS * share // 10),
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=not IS_LONG,
            # Making a failing sequence shorter takes minutes; whoever looks into one turns it on.
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize(
    ("capabilities", "share"), [(PLAIN, 3), (CONDSTORE, 2), (LISTING_STATUS, 2)], ids=["plain", "condstore", "status"]
)
def test_the_mirror_of_a_scripted_server_becomes_it_and_its_states_tell_how(
    capabilities: bytes, share: int, tmp_path: Path
) -> None:
    owners: list[WorldOwner] = []

    def begin(_: object) -> tuple[Owner, Mirror]:
        owners[:] = [WorldOwner()]
        owners[0].create("Archive")
        return owners[0], Mirror(plain_account(server.port, Path(tempfile.mkdtemp(dir=tmp_path))))

    def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
        return owners[0].answer(command)

    with ScriptedImapServer(answer, capabilities) as server:
        run(begin, lambda _: None, NEW_NAMES, share)


def test_the_mirror_of_a_dovecot_becomes_it_and_its_states_tell_how(dovecot: Dovecot, tmp_path: Path) -> None:
    secret = tmp_path / "reader.secret"
    secret.write_text(dovecot.passwords["reader"])

    def begin(_: object) -> tuple[Owner, Mirror]:
        account = plain_account(dovecot.port, Path(tempfile.mkdtemp(dir=tmp_path)), secret_file=secret)
        return DovecotOwner(dovecot), Mirror(account)

    def end(owner: Owner) -> None:
        assert isinstance(owner, DovecotOwner)
        owner.finish()

    secret.chmod(0o400)
    run(begin, end, FLAT_NAMES, 3)
