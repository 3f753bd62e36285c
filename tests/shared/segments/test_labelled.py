from __future__ import annotations

import pytest

from shared.message.html import html_to_text
from shared.message.segments import html_segments, new_text, segments
from tests.shared.segments.labelled import Labelled, labelled_messages, telling_lines

MESSAGES = labelled_messages()


def named(message: Labelled) -> str:
    return f"{message.file}: {message.name}"


def found_in(message: Labelled) -> list[str]:
    if message.text is not None:
        return telling_lines(new_text(message.text))
    return telling_lines(html_segments(message.html or "").new_text())


def test_the_set_has_at_least_150_messages_each_with_a_name_of_its_own() -> None:
    assert len(MESSAGES) >= 150
    assert len({named(message) for message in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("message", [m for m in MESSAGES if not m.keeps_more], ids=named)
def test_new_text_is_what_a_person_calls_new(message: Labelled) -> None:
    assert telling_lines(message.new) == found_in(message)


@pytest.mark.parametrize("message", [m for m in MESSAGES if m.keeps_more], ids=named)
def test_where_new_text_is_not_what_a_person_calls_new_it_is_more_and_not_less(message: Labelled) -> None:
    found = "\n".join(found_in(message))
    assert telling_lines(message.new) != telling_lines(found)
    assert all(line in found for line in telling_lines(message.new))


@pytest.mark.parametrize("message", [m for m in MESSAGES if m.text is not None], ids=named)
def test_the_segments_of_a_labelled_text_are_the_text(message: Labelled) -> None:
    text = message.text or ""
    assert text == "".join(text[part.start : part.end] for part in segments(text))


@pytest.mark.parametrize("message", [m for m in MESSAGES if m.html is not None], ids=named)
def test_the_segments_of_labelled_html_are_the_text_that_its_reader_makes(message: Labelled) -> None:
    found = html_segments(message.html or "")
    assert html_to_text(message.html or "").text == found.text
    assert found.text == "".join(found.text[part.start : part.end] for part in found.segments)
