"""What repeats is told once a minute, with how much was left out; different things are told each."""

from shared.repeats import Repeats


def test_a_line_is_written_at_once_then_once_a_minute_with_the_number_left_out() -> None:
    now = [1_000.0]
    repeats = Repeats(lambda: now[0])
    assert [0, None, None] == [repeats.left_out("a") for _ in range(3)]
    now[0] += 59.9
    assert repeats.left_out("a") is None
    now[0] += 0.1
    assert [3, None] == [repeats.left_out("a") for _ in range(2)]
    now[0] += 3_600
    assert [1, None] == [repeats.left_out("a") for _ in range(2)]


def test_each_key_counts_for_itself() -> None:
    repeats = Repeats(lambda: 5.0)
    assert [0, 0, None] == [repeats.left_out(("asyncio", place)) for place in (1, 2, 1)]
