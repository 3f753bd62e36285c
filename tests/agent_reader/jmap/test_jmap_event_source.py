"""The event source over real connections: what is told, to whom, when it ends, and what a lost client leaves behind."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_reader.access import Agent
from agent_reader.door.limits import DEFAULT_LIMITS
from agent_reader.imap.values import MessageState
from agent_reader.jmap.event_source import EventSources, States, Wish, id_of_states, parse_wish, states_of_id
from agent_reader.scope import ORDINARY
from shared.problem import Problem
from tests.agent_reader import synced
from tests.agent_reader.on_loopback import Client, Served, await_true, descriptors, on_loopback
from tests.agent_reader.served import ACCOUNT, OTHER_ACCOUNT, House, fetched, house, octets

CLIENTS = 200
EVERYTHING = "types=*&closeafter=no&ping=0"


@dataclass
class Streams:
    """A house on loopback, and its event source."""

    house: House
    served: Served

    def open(self, query: str = EVERYTHING, *, token: str | None = None, **headers: str) -> Client:
        fields = {"Authorization": f"Bearer {token or self.house.token}"} | headers
        return self.served.connect(f"/jmap/eventsource?{query}", **fields)

    def flag(self, account: str = ACCOUNT, uid: int = 1, *flags: str) -> str:
        """Change a message's flags; gives the new state."""
        mirror = self.house.store.account(account)
        inbox = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
        synced.change(mirror, inbox.id, {uid: MessageState(frozenset(flags), 99)})
        return self.state(account)

    def deliver(self) -> str:
        """Have a message come in; gives the new state."""
        mirror = self.house.store.account(ACCOUNT)
        inbox = next(mailbox for mailbox in mirror.mailboxes() if mailbox.name == "INBOX")
        mirror.begin_add(inbox.id, [fetched(4, octets(4, "Another order", "Milk."), self.house.clock())])()
        return self.state()

    def state(self, account: str = ACCOUNT) -> str:
        # As the token sees it, which withholds what signs people in.
        with self.house.store.snapshot(account, ORDINARY) as snapshot:
            return snapshot.state

    def held(self) -> tuple[int, int, int]:
        """What the process holds: descriptors, tasks, subscriptions."""
        return descriptors(), self.served.tasks(), self.house.watch.subscribers


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Streams]:
    limits = replace(DEFAULT_LIMITS, max_event_streams=CLIENTS)
    with house(tmp_path_factory.mktemp("streams"), limits=limits) as open_house, on_loopback(open_house.app) as served:
        yield Streams(open_house, served)


def _blocks(octets: bytes) -> list[dict[str, str]]:
    """The fields of each block of a stream (WHATWG HTML §9.2.6), with the last event id that a client then has."""
    text = octets.decode().replace("\r\n", "\n")
    found, last_id = list[dict[str, str]](), ""
    for block in text.partition("\n:\n")[2].split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        last_id = fields.get("id", last_id)
        if fields:
            found.append(fields | {"last id": last_id})
    return found


def _event(octets: bytes, number: int = -1) -> Mapping[str, str]:
    """The fields of one of the events in an answer; what has no data is none."""
    return [block for block in _blocks(octets) if "data" in block][number]


@pytest.mark.statement("179", "180")
def test_a_change_is_told_as_it_happens_with_the_states_that_get_gives(streams: Streams) -> None:
    with streams.open() as client:
        head = client.until(b":\n\n")
        assert b"HTTP/1.1 200 OK" in head
        assert b"content-type: text/event-stream" in head.lower()
        assert b"cache-control: no-store" in head.lower()
        state = streams.flag(ACCOUNT, 1, "\\Flagged")
        event = _event(client.until(b"}}}"))
        assert "state" == event["event"]
        change = {"@type": "StateChange", "changed": {ACCOUNT: dict.fromkeys(("Email", "Mailbox", "Thread"), state)}}
        assert change == json.loads(event["data"])


@pytest.mark.statement("180")
def test_that_mail_came_in_is_a_type_of_its_own_and_nothing_else_is_told_of_it(streams: Streams) -> None:
    """RFC 8621 §1.5."""
    with streams.open("types=EmailDelivery&closeafter=no&ping=0") as client, streams.open() as whole:
        for opened in (client, whole):
            opened.until(b"id: ")
        state = streams.flag(ACCOUNT, 3, "\\Answered")
        told = json.loads(_event(whole.until(b"}}}"), 0)["data"])["changed"]
        assert {ACCOUNT: dict.fromkeys(("Email", "Mailbox", "Thread"), state)} == told
        state = streams.deliver()
        # The first event: of the flag nothing was told.
        told = json.loads(_event(client.until(b"}}}"), 0)["data"])["changed"]
        assert {ACCOUNT: {"EmailDelivery": state}} == told
        told = json.loads(_event(whole.until(b"EmailDelivery"))["data"])["changed"]
        assert {ACCOUNT: dict.fromkeys(("Email", "EmailDelivery", "Mailbox", "Thread"), state)} == told


@pytest.mark.statement("179")
def test_only_the_types_that_were_asked_for_are_told(streams: Streams) -> None:
    with streams.open("types=Mailbox,CalendarEvent&closeafter=no&ping=0") as client:
        client.until(b":\n\n")
        state = streams.flag(ACCOUNT, 2, "\\Flagged")
        assert {ACCOUNT: {"Mailbox": state}} == json.loads(_event(client.until(b"}}}"))["data"])["changed"]


@pytest.mark.statement("179")
def test_closeafter_state_ends_the_stream_with_the_first_event(streams: Streams) -> None:
    with streams.open("types=*&closeafter=state&ping=0") as client:
        client.until(b":\n\n")
        streams.flag(ACCOUNT, 3, "\\Flagged")
        octets = client.to_the_end()
    assert 1 == octets.count(b"event: state")
    assert octets.endswith(b"0\r\n\r\n")


@pytest.mark.statement("180")
def test_whoever_comes_back_is_told_what_he_missed_and_nothing_else(streams: Streams) -> None:
    with streams.open() as client:
        client.until(b":\n\n")
        streams.flag(ACCOUNT, 1, "\\Flagged", "\\Seen")
        seen = _event(client.until(b"}}}"))["id"]
    state = streams.flag(OTHER_ACCOUNT, 1, "\\Flagged")
    with streams.open(Last_Event_ID=seen) as client:
        changed = json.loads(_event(client.until(b"}}}"))["data"])["changed"]
        assert {OTHER_ACCOUNT: dict.fromkeys(("Email", "Mailbox", "Thread"), state)} == changed
        newest = _event(bytes(client.octets))["id"]
    with streams.open(Last_Event_ID=newest) as client:
        client.until(b":\n\n")
        streams.flag(ACCOUNT, 2, "\\Flagged", "\\Seen")
        # The first thing that comes is what is new; of what was known nothing came before.
        assert [ACCOUNT] == list(json.loads(_event(client.until(b"}}}"), 0)["data"])["changed"])


@pytest.mark.statement("180")
def test_who_loses_the_stream_before_the_first_event_misses_none(streams: Streams) -> None:
    with streams.open() as client:
        # An id without data is no event (WHATWG HTML §9.2.6), and sent back all the same.
        (opening,) = _blocks(client.until(b"\n\n\r\n"))
    assert {"id"} == opening.keys() - {"last id"}
    state = streams.flag(OTHER_ACCOUNT, 1, "\\Seen")
    with streams.open(Last_Event_ID=opening["id"]) as client:
        changed = json.loads(_event(client.until(b"}}}"))["data"])["changed"]
    assert {OTHER_ACCOUNT: dict.fromkeys(("Email", "Mailbox", "Thread"), state)} == changed


@pytest.mark.parametrize("untrusted", ["nonsense", "e30", "WzFd", "x" * 9_000, "\u00e9"])
def test_an_id_that_is_none_of_ours_is_told_everything(streams: Streams, untrusted: str) -> None:
    with streams.open("types=Email&closeafter=state&ping=0", Last_Event_ID=untrusted) as client:
        changed = json.loads(_event(client.to_the_end())["data"])["changed"]
    assert {name: {"Email": streams.state(name)} for name in (ACCOUNT, OTHER_ACCOUNT)} == changed


def test_the_states_of_an_id_are_those_that_made_it() -> None:
    states = {"shop": {"Email": "ab-1", "Mailbox": "ab-2"}}
    assert states == states_of_id(id_of_states(states))
    assert states_of_id(None) is None
    assert states_of_id("") is None


def test_nothing_is_told_when_nothing_that_is_shown_changed(streams: Streams) -> None:
    with streams.open() as client:
        client.until(b":\n\n")
        mirror = streams.house.store.account(ACCOUNT)
        # A round without news makes no state; the next change is the first event.
        mirror.settle()
        state = streams.flag(ACCOUNT, 3, "\\Seen")
        assert state in _event(client.until(b"}}}"), 0)["data"]


@pytest.mark.statement("179")
def test_a_ping_says_its_interval_and_who_wants_none_gets_none(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_reader.jmap.event_source.LEAST_PING_SECONDS", 1)
    with (
        streams.open("types=*&closeafter=no&ping=0") as quiet,
        streams.open("types=*&closeafter=no&ping=1") as client,
        streams.open("types=*&closeafter=state&ping=1") as closing,
    ):
        quiet.until(b":\n\n")
        closing.until(b"}\n\n")
        event = _event(client.until(b"}\n\n"))
        assert ("ping", {"interval": 1}) == (event["event"], json.loads(event["data"]))
        # RFC 8620 §7.3: it sets no new event id.
        assert "id" not in event
        streams.flag(ACCOUNT, 1, "\\Draft")
        assert b"ping" not in quiet.until(b"}}}")
        # A ping is no state that ends a stream, nor does it keep one from telling a state.
        assert "state" == _event(closing.to_the_end())["event"]
        assert b"event: state" in client.until(b"}}}")


@pytest.mark.parametrize(
    ("query", "wish"),
    [
        ({"types": "*", "closeafter": "no", "ping": "0"}, Wish(None, closes_after_state=False, ping_seconds=0)),
        (
            {"types": "Email,Thread", "closeafter": "state", "ping": "60"},
            Wish(frozenset({"Email", "Thread"}), closes_after_state=True, ping_seconds=60),
        ),
        ({"types": "*", "closeafter": "no", "ping": "1"}, Wish(None, closes_after_state=False, ping_seconds=30)),
        ({"types": "*", "closeafter": "no", "ping": "4000000"}, Wish(None, closes_after_state=False, ping_seconds=300)),
    ],
)
@pytest.mark.statement("179")
def test_the_arguments_are_read_and_the_interval_is_held_within_bounds(query: dict[str, str], wish: Wish) -> None:
    assert wish == parse_wish(query)


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"types": ""}, "types"),
        ({"types": None}, "types"),
        ({"types": "*,Email"}, "types"),
        ({"types": "Email;Thread"}, "types"),
        ({"types": "Email,"}, "types"),
        ({"types": ",".join(f"T{number}" for number in range(60))}, "types"),
        ({"closeafter": "yes"}, "closeafter"),
        ({"closeafter": None}, "closeafter"),
        ({"ping": "-1"}, "ping"),
        ({"ping": "1.5"}, "ping"),
        ({"ping": None}, "ping"),
        ({"ping": "9" * 30}, "ping"),
    ],
)
def test_a_wrong_argument_is_refused_and_named(changed: dict[str, Any], argument: str) -> None:
    asked = {"types": "*", "closeafter": "no", "ping": "0"} | changed
    with pytest.raises(Problem) as refused:
        parse_wish({name: value for name, value in asked.items() if value is not None})
    assert (400, argument) == (refused.value.status, refused.value.extra["argument"])


def test_head_opens_no_stream(streams: Streams) -> None:
    path = f"/jmap/eventsource?{EVERYTHING}"
    with streams.served.connect(path, method="HEAD", Authorization=f"Bearer {streams.house.token}") as client:
        head = client.to_the_end()
    assert b"200 OK" in head
    assert b"text/event-stream" in head


def test_a_token_that_was_revoked_or_has_expired_ends_its_stream(tmp_path: Path) -> None:
    with house(tmp_path) as open_house, on_loopback(open_house.app) as served:
        streams = Streams(open_house, served)
        revoked = open_house.access.create_token("other")
        short = open_house.access.create_token("short", timedelta(minutes=5))
        with streams.open(token=revoked.text) as first, streams.open(token=short.text) as second:
            first.until(b":\n\n")
            second.until(b":\n\n")
            open_house.access.revoke(revoked.id)
            open_house.clock.forward(timedelta(minutes=6))
            streams.flag(ACCOUNT, 1, "\\Flagged")
            for client in (first, second):
                assert b"event:" not in client.to_the_end()


def test_states_that_were_read_while_the_token_was_revoked_are_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with house(tmp_path) as open_house, on_loopback(open_house.app) as served:
        revoked = open_house.access.create_token("other")
        read = EventSources.states

        async def read_meanwhile(sources: EventSources, wish: Wish, agent: Agent, accounts: Collection[str]) -> States:
            open_house.access.revoke(revoked.id)
            return await read(sources, wish, agent, accounts)

        monkeypatch.setattr(EventSources, "states", read_meanwhile)
        # Knows nothing, so everything would be told at once.
        with Streams(open_house, served).open(token=revoked.text, Last_Event_ID="e30") as client:
            octets = client.to_the_end()
    assert b"200 OK" in octets
    assert b"event:" not in octets


def test_an_agent_has_a_few_streams_and_another_one_its_own(tmp_path: Path) -> None:
    limits = replace(DEFAULT_LIMITS, max_event_streams=2)
    with house(tmp_path, limits=limits) as open_house, on_loopback(open_house.app) as served, ExitStack() as opened:
        streams = Streams(open_house, served)
        clients = [opened.enter_context(streams.open()) for _ in range(2)]
        for client in clients:
            client.until(b":\n\n")
        with streams.open() as third:
            refused = third.to_the_end()
        assert b"429" in refused.partition(b"\r\n")[0]
        assert b"too_many_streams" in refused
        other = open_house.access.create_token("other").text
        opened.enter_context(streams.open(token=other)).until(b":\n\n")
        clients[0].close()
        await_true(lambda: _is_open(streams))


def _is_open(streams: Streams) -> bool:
    with streams.open() as client:
        return b"200 OK" in client.until(b"\r\n")


@pytest.mark.statement("181")
def test_two_hundred_clients_that_are_lost_leave_nothing_behind(streams: Streams) -> None:
    # What is kept for the next question is opened before anything is counted.
    for _ in range(2):
        _open_and_lose(streams, 8)
    before = streams.held()
    _open_and_lose(streams, CLIENTS)
    # No more than before: the end of the first ones may have been under way still.
    await_true(lambda: all(now <= then for now, then in zip(streams.held(), before, strict=True)))
    # All places are free again.
    with streams.open() as client:
        client.until(b":\n\n")


def _open_and_lose(streams: Streams, number: int) -> None:
    """Half are lost while nothing happens, half while they are being told something."""
    with ExitStack() as opened:
        clients = [opened.enter_context(streams.open()) for _ in range(number)]
        for client in clients:
            client.until(b":\n\n")
        assert streams.house.watch.subscribers >= number
        for client in clients[: number // 2]:
            client.close()
        streams.flag(ACCOUNT, 1, "\\Answered")
        streams.flag(ACCOUNT, 1)
    await_true(lambda: 0 == streams.served.connections())
    await_true(lambda: 0 == streams.house.watch.subscribers)
