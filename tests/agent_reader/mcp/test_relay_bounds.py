"""What a client can make the relay hold and do: requests by the thousand, cancelled ones, and nobody left to answer."""

from __future__ import annotations

import io
import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_reader.relay.endpoint import Endpoint, Reply
from agent_reader.relay.relay import Relay
from agent_reader.relay.stdio import _MAX_WAITING, _THREADS, run


class Lines(io.BytesIO):
    """What a client says; at its end the reader begins to answer."""

    def __init__(self, *messages: object) -> None:
        super().__init__(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        self.ended = threading.Event()

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line:
            self.ended.set()
        return line


class Gone(io.BytesIO):
    """Where nobody reads any more."""

    def write(self, _octets: Any, /) -> int:
        raise BrokenPipeError


@dataclass(frozen=True, slots=True)
class Slow(Endpoint):
    """A reader that answers once everything was said, and `fewest` were asked for."""

    until: threading.Event = field(default_factory=threading.Event)
    asked: list[object] = field(default_factory=list)
    fewest: int = 1
    are_in: threading.Event = field(default_factory=threading.Event)

    def request(
        self, _method: str, _path: str, content: Any = None, _headers: Mapping[str, str] | None = None
    ) -> Reply:
        self.asked.append(content["id"])
        if len(self.asked) >= self.fewest:
            self.are_in.set()
        assert self.until.wait(30)
        assert self.are_in.wait(30)
        return Reply(200, {"jsonrpc": "2.0", "id": content["id"], "result": {}})


def called(number: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "search_mail"}}


def said(*messages: object, answers: io.BytesIO, fewest: int = 1) -> list[object]:
    """Have the relay hear messages; return the ids that the reader was asked for."""
    lines = Lines(*messages)
    reader = Slow("reader", "http://127.0.0.1:9", "", lines.ended, fewest=fewest)
    run(Relay(reader, None), lines, answers)
    return reader.asked


def test_requests_past_the_bound_are_refused_and_each_is_answered_once() -> None:
    past = 1_000
    asked = said(*map(called, range(_MAX_WAITING + past)), answers=(answers := io.BytesIO()))
    told = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert set(range(_MAX_WAITING + past)) == {each["id"] for each in told}
    assert {1} == set(Counter(each["id"] for each in told).values())
    refused = [each for each in told if "too_many_requests" in str(each)]
    assert (past, _MAX_WAITING) == (len(refused), len(asked))
    assert all(each["result"]["isError"] for each in refused)


def test_a_request_that_is_cancelled_while_it_waits_is_not_passed_on() -> None:
    cancelled = [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 20}}]
    asked = said(*map(called, range(30)), *cancelled, answers=(answers := io.BytesIO()))
    told = {json.loads(line)["id"] for line in answers.getvalue().splitlines()}
    assert set(range(30)) - {20} == set(asked) == told


def test_a_number_and_a_string_are_two_requests() -> None:
    said(called(1), called("1"), answers=(answers := io.BytesIO()))
    assert {1, "1"} == {json.loads(line)["id"] for line in answers.getvalue().splitlines()}


def test_for_a_client_that_went_nothing_more_is_asked() -> None:
    # But what was asked before the first of them met nobody; none is refused, which would meet nobody sooner.
    assert _THREADS == len(said(*map(called, range(_MAX_WAITING)), answers=Gone(), fewest=_THREADS))
