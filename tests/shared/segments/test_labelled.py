from __future__ import annotations

import pytest

from shared.message.html import html_to_text
from shared.message.segments import html_segments, new_text, segments
from tests.shared.segments.labelled import Labelled, labelled_messages, telling_lines

MESSAGES = labelled_messages()


def test_the_set_has_at_least_150_messages_each_with_a_name_of_its_own() -> None:
    assert len(MESSAGES) >= 150
    assert len({(message.file, message.name) for message in MESSAGES}) == len(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.file}: {message.name}")
def test_new_text_is_what_a_person_calls_new(message: Labelled) -> None:
    if message.html is not None:
        found = html_segments(message.html)
        assert html_to_text(message.html).text == found.text
        assert telling_lines(message.new) == telling_lines(found.new_text())
        return
    assert message.text is not None
    assert telling_lines(message.new) == telling_lines(new_text(message.text))
    assert message.text == "".join(message.text[part.start : part.end] for part in segments(message.text))
