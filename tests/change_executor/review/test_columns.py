"""Aligned tables keep their columns, prose wraps, and nothing of a text is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from change_executor.review.columns import blocks

TABLE = "Item          Qty   Price\n-------------------------\nTea             2   12.50\nTeapot          1   89.00\n"


@given(st.text(st.sampled_from("ab |\t-=\n\r\u2028 "), max_size=300))
def test_the_pieces_are_the_text_again(text: str) -> None:
    assert text == "".join(piece for _, piece in blocks(text))


def test_a_table_between_prose_is_one_piece_with_its_rule() -> None:
    assert [(False, "Hello\n\n"), (True, TABLE), (False, "\nBye")] == blocks(f"Hello\n\n{TABLE}\nBye")


@pytest.mark.parametrize(
    "table", ["a\tb\nc\td\n", "| a | b |\n|---|---|\n| c | d |\n", "name:   Ada\nplace:  Jena\n", "1   x\n22  y"]
)
def test_what_is_aligned_is_a_table(table: str) -> None:
    assert [(True, table)] == blocks(table)


@pytest.mark.parametrize(
    "prose",
    [
        "One sentence.  Another one.\nA third, longer sentence.  And the last.\n",
        "one   gap alone\nand prose",
        "a | b\nc | d",
        "x" * 500 + "  y\n" + "x" * 500 + "  y",
        "",
        "\n\n",
    ],
)
def test_what_only_has_spaces_is_prose(prose: str) -> None:
    assert not [piece for is_table, piece in blocks(prose) if is_table]


def test_a_long_hostile_text_costs_no_more_for_each_character() -> None:
    assert 200_000 == sum(len(piece) for _, piece in blocks("  a" * 40_000 + "\n" * 80_000))
