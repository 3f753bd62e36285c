"""Mail that lets somebody in is told from mail that speaks of such things."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.message.sign_in import is_sign_in_mail
from shared.message.sign_in_words import (
    CODE_STEMS,
    CODE_WORDS,
    LINK_STEMS,
    LINK_WORDS,
    RESET_STEMS,
    RESET_WORDS,
    WEAK_CODE_STEMS,
    WEAK_CODE_WORDS,
)
from tests.shared.sign_in_messages import LETS_IN, NEAR_MISSES

DOCUMENT = Path(__file__).parents[3] / "docs" / "sign-in-mail.md"


def _found(messages: tuple[tuple[str, str, str], ...]) -> list[str]:
    return [subject for _, subject, text in messages if is_sign_in_mail(subject, text)]


def test_precision_and_recall_are_what_the_document_says() -> None:
    found, mistaken = len(_found(LETS_IN)), len(_found(NEAR_MISSES))
    precision, recall = found / (found + mistaken), found / len(LETS_IN)
    said = (
        f"{len(LETS_IN)} messages that let somebody in, {found} found; {len(NEAR_MISSES)} near misses, "
        f"{mistaken} taken for one. Precision {precision:.3f}, recall {recall:.3f}"
    )
    assert said in " ".join(DOCUMENT.read_text().split())


def test_the_labelled_messages_are_enough_and_in_many_languages() -> None:
    assert 60 <= len(LETS_IN) + len(NEAR_MISSES)
    assert 15 <= len({language for language, _, _ in LETS_IN})
    assert 10 <= len({language for language, _, _ in NEAR_MISSES})


@pytest.mark.parametrize(
    "link", ["https://e.org/r/aB3dE5gH7jK9mN1p", "https://e.org/r?token=abc123", "https://e.org/#/r?k=zz81kd93"]
)
def test_a_link_of_the_html_counts_as_one_in_the_text(link: str) -> None:
    assert is_sign_in_mail("Reset your password", "Press the button.", [link])
    assert not is_sign_in_mail("Re: Reset your password", "Press the button.", ["https://e.org/help"])


@pytest.mark.parametrize(
    "piece", ["verification code ", "1234 ", "https://e.org/?token=", "reset your password ", "click ", "K7Q2M9-"]
)
def test_a_hostile_text_costs_no_more_than_its_beginning(piece: str) -> None:
    text = piece * (2_000_000 // len(piece))
    # Some milliseconds; were it quadratic, minutes.
    assert is_sign_in_mail(text[:100_000], text, [text[:100_000]] * 1_000) in {True, False}


def test_no_text_is_beyond_it() -> None:
    for text in ("", "\x00", "\ud800", "https://[::1", "http://x/?" + "&" * 100, "٤٨٢٩١٣ رمز التحقق"):
        assert is_sign_in_mail(text, text, [text]) in {True, False}
    assert re.search(r"\S", DOCUMENT.read_text())


@pytest.mark.parametrize(
    ("stems", "ways"),
    [
        (CODE_STEMS, CODE_WORDS),
        (WEAK_CODE_STEMS, WEAK_CODE_WORDS),
        (RESET_STEMS, RESET_WORDS),
        (LINK_STEMS, LINK_WORDS),
    ],
)
def test_whatever_a_way_can_match_holds_a_stem_of_its_table(stems: tuple[str, ...], ways: tuple[str, ...]) -> None:
    for way in ways:

        @settings(max_examples=30, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.from_regex(re.compile(way), fullmatch=True))
        def holds_a_stem(said: str) -> None:
            assert any(stem in said for stem in stems)

        holds_a_stem()


def test_letter_case_is_of_no_account() -> None:
    assert is_sign_in_mail("YOUR VERIFICATION CODE", "YOUR CODE IS 482913. IT EXPIRES IN TEN MINUTES.")
    assert is_sign_in_mail("Doğrulama kodu", "DOĞRULAMA KODU: 482913. Geçerlidir 10 dakika.")
