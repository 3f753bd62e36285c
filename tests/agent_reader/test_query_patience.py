"""Patience: a search and the reading end at their own moments, and both at once where nobody waits."""

import pytest

from agent_reader.query import QueryRefused
from agent_reader.query.patience import Abandoned, Patience


@pytest.mark.parametrize(("now", "is_over"), [(1.9, False), (2.0, True), (3.0, True)])
def test_a_search_ends_at_its_moment(now: float, is_over: bool) -> None:
    assert is_over is Patience(lambda: now, 2.0, 9.0).is_over()


def test_reading_goes_on_past_the_searchs_moment_up_to_its_own() -> None:
    Patience(lambda: 8.9, 2.0, 9.0).go_on()
    with pytest.raises(QueryRefused):
        Patience(lambda: 9.0, 2.0, 9.0).go_on()


def test_where_nobody_waits_both_end_whatever_time_it_is() -> None:
    abandoned = Patience(lambda: 0.0, 2.0, 9.0, lambda: True)
    assert abandoned.is_over()
    with pytest.raises(Abandoned):
        abandoned.go_on()
    with pytest.raises(Abandoned):
        Patience(lambda: 10.0, 2.0, 9.0, lambda: True).go_on()
