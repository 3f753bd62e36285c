"""Within the first look Threads are the same for every order in which messages come in (RFC 8621 §3)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_reader.sync.mirror import FetchedMessage, ThreadHeader
from tests.agent_reader import synced
from tests.agent_reader.mirrored import ACCOUNT, START, fetched, id_of, letter, mirrored

_NAMES = ("INBOX", "Archive")


@dataclass(frozen=True)
class Sent:
    """A message of the model; `refers` are Message-IDs, `at` minutes after the start."""

    number: int
    message_id: int | None
    refers: tuple[int, ...]
    subject: str
    at: int

    @property
    def octets(self) -> bytes:
        headers = {
            "Message-ID": "" if self.message_id is None else f"<{self.message_id}@x>",
            "References": " ".join(f"<{each}@x>" for each in self.refers[:-1]),
            "In-Reply-To": "".join(f"<{each}@x>" for each in self.refers[-1:]),
        }
        return letter(f"number {self.number}", subject=self.subject, headers=headers)

    @property
    def ids(self) -> set[tuple[int, str]]:
        base = self.subject.rpartition(" ")[2]
        own = () if self.message_id is None else (self.message_id,)
        return {(each, base) for each in (*self.refers, *own)}

    def arrived(self) -> FetchedMessage:
        return fetched(self.number + 1, self.octets, at=START + timedelta(minutes=self.at))


@st.composite
def mailboxes(draw: st.DrawFn) -> list[Sent]:
    return [
        Sent(
            number=number,
            message_id=draw(st.one_of(st.none(), st.integers(0, 11))),
            refers=tuple(draw(st.lists(st.integers(0, 11), max_size=3))),
            subject=draw(
                st.sampled_from(["order", "Re: order", "AW: order", "[list] Fwd: order", "other", "Re: other"])
            ),
            at=draw(st.integers(0, 5)),
        )
        for number in range(draw(st.integers(1, 10)))
    ]


def hang_together(sent: Sequence[Sent]) -> set[frozenset[int]]:
    """The partition as the RFC says it, by joining until nothing more joins."""
    groups = [({each.number}, set(each.ids)) for each in sent]
    joined = True
    while joined:
        joined = False
        for one in groups:
            for other in groups:
                if one is not other and one[1] & other[1]:
                    one[0].update(other[0])
                    one[1].update(other[1])
                    groups.remove(other)
                    joined = True
                    break
            if joined:
                break
    return {frozenset(numbers) for numbers, _ in groups}


def threads_after(
    sent: Sequence[Sent], looked: Sequence[Sent], arriving: Sequence[Sent], at_once: int
) -> dict[int, str]:
    """Thread id of each message, after a first look in one order and arrivals in another; checked not to change."""
    folder = Path(tempfile.mkdtemp())
    try:
        with mirrored(folder) as account:
            account.begin(*_NAMES)
            for each in looked:
                message = each.arrived()
                header = ThreadHeader(message.uid, message.internaldate, message.header)
                place = each.number % len(_NAMES)
                synced.put_headers(account.mirror, account.handle(_NAMES[place]), 1000 + place, [header])
            account.mirror.thread()
            given: dict[int, str] = {}
            for begin in range(0, len(arriving), at_once):
                for each in arriving[begin : begin + at_once]:
                    account.add(_NAMES[each.number % len(_NAMES)], each.arrived())
                with account.store.snapshot(ACCOUNT) as snapshot:
                    there = {each.number: id_of(each.octets) for each in arriving[: begin + at_once]}
                    found = snapshot.emails(there.values())
                now = {number: found[email_id].thread_id for number, email_id in there.items()}
                assert given.items() <= now.items()
                given = now
            assert len(given) == len(sent)
            return given
    finally:
        shutil.rmtree(folder)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), sent=mailboxes())
def test_the_partition_is_the_same_for_every_order_of_arrival(data: st.DataObject, sent: list[Sent]) -> None:
    orders = [data.draw(st.permutations(sent)) for _ in range(4)]
    first = threads_after(sent, orders[0], orders[1], at_once=1)
    second = threads_after(sent, orders[2], orders[3], at_once=3)
    groups: dict[str, set[int]] = {}
    for number, thread_id in first.items():
        groups.setdefault(thread_id, set()).add(number)
    assert {frozenset(group) for group in groups.values()} == hang_together(sent)
    named = [each.number for each in sent if each.ids]
    assert {number: first[number] for number in named} == {number: second[number] for number in named}


def test_a_threads_id_is_the_same_whether_or_not_the_message_that_it_begins_with_is_here() -> None:
    """Else who sees a reply alone could tell whether what it answers lies in a mailbox that is hidden."""
    root = Sent(0, 1, (), "order", 0)
    replies = [Sent(1, 2, (1,), "Re: order", 1), Sent(2, 3, (1, 2), "Re: order", 2)]
    whole = threads_after([root, *replies], [root, *replies], [*replies, root], at_once=2)
    rest = threads_after(replies, replies, replies, at_once=2)
    assert {whole[0]} == set(whole.values()) == set(rest.values())
