"""How long what failed is left alone, and what a failure says of the server behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from change_executor.retrying import LONGEST_RETRY, Retry, Servers

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def test_the_pauses_grow_to_a_bound_with_what_was_tried_and_not_with_what_was_put_off() -> None:
    retry: Retry | None = None
    pauses: list[float] = []
    for _ in range(10):
        assert Retry.after(retry, NOON).due == Retry.after(retry, NOON, was_tried=False).due
        put_off = Retry.after(retry, NOON, was_tried=False)
        assert put_off.tried == len(pauses)
        retry = Retry.after(put_off, NOON)
        pauses.append((retry.due - NOON).total_seconds())
    assert [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0] == pauses
    assert retry is not None
    assert NOON + LONGEST_RETRY == retry.due


def test_it_holds_from_its_beginning_to_its_end() -> None:
    retry = Retry.after(None, NOON)
    moments = [NOON - timedelta(microseconds=1), NOON, retry.due - timedelta(microseconds=1), retry.due]
    assert [False, True, True, False] == [retry.holds(moment) for moment in moments]


@pytest.mark.parametrize(
    ("signed_in", "seconds", "in_trouble"),
    [(True, 1.0, {}), (True, 90.0, {"move": False}), (False, 1.0, {"move": True}), (False, 90.0, {"move": True})],
)
def test_a_failure_that_comes_soon_in_a_session_says_nothing_of_the_server(
    *, signed_in: bool, seconds: float, in_trouble: dict[str, bool]
) -> None:
    servers = Servers()
    servers.failed("move", signed_in=signed_in, seconds=seconds)
    assert in_trouble == servers.in_trouble
