"""Text made into words, alike for index and questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reader.store.fold import TOKEN_MARK, fold, sort_order


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", "hello world"),
        ("Grüße aus Köln", "grusse aus koln"),
        ("Gru\u0308ße", "grusse"),
        ("STRASSE straße", "strasse strasse"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
        ("ёлка", "елка"),
        ("Ｆｕｌｌ １２３", "full 123"),
        ("ﬁle", "file"),
        ("2026-11-29", "2026 11 29"),
        ("a_b.c@d-e.org", "a b c d e org"),
        ("東京都", "東 京 都"),
        ("iPhone用ケース", "iphone 用 ケ ー ス"),
        ("ｶﾞｷﾞ", "ガ ギ"),
        ("서울에서", "서 울 에 서"),
        ("สวัสดี", "ส ว ั ส ด ี"),
        ("party 🎉🎉", "party 🎉 🎉"),
        ("", ""),
        (" \t\n--- \u00a0", ""),
        (f"{TOKEN_MARK}m1 x", "m1 x"),
        ("a\x00b", "a b"),
        ("in\u00advo\u200bi\u2060ce", "invoice"),
        ("हिन्दी है।", "हिन्दी है"),
        ("שָׁלוֹם", "שלום"),
        ("آمَنَ", "امن"),
        ("محـــمد", "محمد"),
        ("کتابی", "كتابي"),
        ("٣٤ ۱۲۳ १२ ๑๒", "34 123 12 12"),
        ("Łódź Đức Ærø Søren", "lodz duc aero soren"),
        ("№1234 Acme™ 2½", "no 1234 acme tm 2 1 2"),
        ("nº1234 Mª", "no 1234 ma"),
        ("⭐⏰ ▶ go", "⭐ ⏰ ▶ go"),
        ("--- ► → • ▪", ""),
    ],
)
def test_words_are_folded(text: str, words: str) -> None:
    assert fold(text).split() == words.split()


@given(st.text())
def test_nothing_but_words_and_single_spaces_comes_out(text: str) -> None:
    folded = fold(text)
    assert TOKEN_MARK not in folded
    assert not set(folded) & set("\"'*()^:+-{}\\\n\t\r\x00")
    assert "  " not in folded
    assert folded == folded.strip()


@given(st.text(), st.text())
def test_parts_fold_as_the_whole_does(one: str, two: str) -> None:
    assert fold(f"{one} {two}").split() == [*fold(one).split(), *fold(two).split()]


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)).split() == fold(text).split()


@pytest.mark.parametrize("character", ["\u0300", "\u05b0", "\u0f71", "\u3099", "\u1100", "💥", "a\u0300"])
def test_a_long_run_of_marks_costs_no_more_than_text(character: str) -> None:
    # With quadratic normalisation the test's time limit would end this.
    assert isinstance(fold("a" + character * 400_000), str)
    assert isinstance(sort_order("a" + character * 400_000), str)


@pytest.mark.parametrize("word", ["Köln", "plain", "東京 都", "line\n"])
def test_a_long_text_has_the_words_of_its_parts(word: str) -> None:
    assert fold(f"{word} " * 50_000).split() == fold(word).split() * 50_000
    assert fold("字" * 200_000) == " ".join("字" * 200_000)
    assert fold(" " * 200_000) == ""


def test_sorting_leaves_case_and_marks_aside() -> None:
    assert sorted(["Zebra", "äpfel", "Apfel", "bär"], key=sort_order) == ["äpfel", "Apfel", "bär", "Zebra"]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\u0300"), max_size=40))
def test_a_text_is_folded_alike_whatever_it_stands_beside(text: str) -> None:
    # Beside a letter that is no ASCII when folded the whole is folded in another way.
    assert f"{fold(text)} 東".strip() == fold(f"{text} 東")
