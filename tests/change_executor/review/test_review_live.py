"""Open pages are told that something changed, and leaving frees what a stream held."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from change_executor.review import hub as hub_module
from change_executor.review import live
from change_executor.review.hub import Hub
from change_executor.switch import press_stop, release_stop
from tests.servers.desk import ReviewPage, press, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx


def lines(response: httpx.Response) -> Iterator[str]:
    yield from response.iter_lines()


def next_change(stream: Iterator[str]) -> dict[str, Any]:
    for line in stream:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
            data = next(stream).removeprefix("data: ")
            return {"event": name, **json.loads(data)}
    raise AssertionError("the stream ended")


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    pause = threading.Event()
    while not true():
        assert time.monotonic() < deadline, "it never became so"
        pause.wait(0.02)


def hub_of(page: ReviewPage) -> Hub:
    hub = page.app.state.hub
    assert isinstance(hub, Hub)
    return hub


def test_a_page_is_told_which_proposals_changed_and_how_many_wait_and_nothing_else(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    with client.stream("GET", "/events") as response:
        stream = lines(response)
        assert "retry: 5000" == next(stream)
        proposal = review_page.rows.proposal(reading("A secret subject"), "a secret reason")
        assert {"event": "change", "proposals": [proposal.id], "stop": None, "waiting": 1} == next_change(stream)


def test_what_happened_between_the_page_and_its_stream_is_not_missed(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    text = client.get("/").text
    seq = text.partition('data-seq="')[2].partition('"')[0]
    proposal = review_page.rows.proposal(reading())
    with client.stream("GET", f"/events?since={seq}") as response:
        assert [proposal.id] == next_change(lines(response))["proposals"]
    with client.stream("GET", "/events?since=0", headers={"Last-Event-ID": seq}) as response:
        assert [proposal.id] == next_change(lines(response))["proposals"]


def test_what_another_process_wrote_is_found_at_the_next_beat(
    review_page: ReviewPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.05)
    client = review_page.signed_in()
    review_page.journal.unlisten(hub_of(review_page).wake)
    try:
        with client.stream("GET", "/events") as response:
            stream = lines(response)
            next(stream)
            press_stop(review_page.journal, "operator")
            assert "change" == next_change(stream)["event"]
    finally:
        review_page.journal.listen(hub_of(review_page).wake)


def test_a_page_is_told_of_the_stop_button_by_its_last_state(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    seq = client.get("/").text.partition('data-seq="')[2].partition('"')[0]
    told = []
    for act in (press_stop, release_stop, press_stop):
        act(review_page.journal, "operator")
        with client.stream("GET", f"/events?since={seq}") as response:
            told.append(next_change(lines(response))["stop"])
    assert ["pressed", "released", "pressed"] == told


def test_a_stream_ends_with_its_session(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    with client.stream("GET", "/events") as response:
        stream = lines(response)
        next(stream)
        press(client, client.get("/").text, "/sign-out")
        assert "signed-out" == next_change(stream)["event"]
        assert not [line for line in stream if line]


def test_a_browser_that_leaves_frees_its_place(review_page: ReviewPage) -> None:
    client, hub = review_page.signed_in(), hub_of(review_page)
    for _ in range(3):
        with client.stream("GET", "/events") as response:
            stream = lines(response)
            next(stream)
            assert 1 == hub.count()
        until(lambda: hub.count() == 0)


def test_streams_are_bounded_and_the_pages_go_on(review_page: ReviewPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "MAX_STREAMS_PER_SESSION", 3)
    client, hub = review_page.signed_in(), hub_of(review_page)
    with ExitStack() as open_streams:
        streams = [lines(open_streams.enter_context(client.stream("GET", "/events"))) for _ in range(3)]
        assert ["retry: 5000"] * 3 == [next(stream) for stream in streams]
        refused = client.get("/events")
        assert (503, True) == (refused.status_code, "Too many open pages" in refused.text)
        assert 200 == client.get("/").status_code
    until(lambda: hub.count() == 0)
    with client.stream("GET", "/events") as response:
        assert 200 == response.status_code


def test_a_hundred_open_streams_all_hear_of_a_change(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    cookies = dict(client.cookies)
    with ExitStack() as open_streams:
        streams = []
        for _ in range(100):
            other = review_page.client()
            other.cookies.update(cookies)
            stream = lines(open_streams.enter_context(other.stream("GET", "/events")))
            next(stream)
            streams.append(stream)
        proposal = review_page.rows.proposal(reading())
        for stream in streams:
            assert [proposal.id] == next_change(stream)["proposals"]


def test_clients_that_read_nothing_stop_nobody(review_page: ReviewPage) -> None:
    """Each asks for more than fits into the buffers between, takes nothing, and the others are served."""
    for number in range(30):
        review_page.rows.proposal(reading(f"Number {number}", "A long text. " * 4_000))
    client = review_page.signed_in()
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    ids = "&".join(f"p=P{number:020d}" for number in range(1, 31))
    with ExitStack() as open_sockets:
        for path in [f"/together?{ids}"] * 20 + ["/events", "/log/export"] * 5:
            slow = open_sockets.enter_context(socket.create_connection(("127.0.0.1", review_page.served.port)))
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            host = f"localhost:{review_page.served.port}"
            slow.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
        other = review_page.client()
        other.cookies.update(dict(client.cookies))
        with other.stream("GET", "/events") as response:
            stream = lines(response)
            next(stream)
            assert 200 == client.get("/").status_code
            proposal = review_page.rows.proposal(reading("Another"))
            assert [proposal.id] == next_change(stream)["proposals"]
            item = client.get(f"/p/{proposal.id}").text
            assert 303 == press(client, item, f"/p/{proposal.id}/approve").status_code


def test_closing_ends_the_streams_so_that_a_stop_is_quick(review_page: ReviewPage) -> None:
    client = review_page.signed_in()
    with client.stream("GET", "/events") as response:
        stream = lines(response)
        next(stream)
        hub_of(review_page).close()
        assert not [line for line in stream if line.startswith("event")]
    assert 503 == client.get("/events").status_code
