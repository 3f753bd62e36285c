"""What must hold of any octets that are read as a message: asked by the fuzzer and by the replay of its corpus."""

import json
import unicodedata
from itertools import pairwise
from typing import Final

from shared.fence import Fence, clean, clean_line
from shared.message import (
    BODY_PROPERTIES,
    CONTENT_PROPERTIES,
    JSON,
    HeaderForm,
    Message,
    Part,
    attachment_text,
    authentication,
    base_subject,
    email_json,
    flags,
    link_findings,
    parse,
    preview_of,
    readable_text,
    segmented_text,
)

# Every form of a field that may be read in every form, and each form of the fields that have their own.
_FORMS: Final = (
    *(f"header:X:{form}:all" for form in HeaderForm),
    "header:To:asGroupedAddresses:all",
    "header:References:asMessageIds:all",
    "header:Date:asDate:all",
    "header:List-Post:asURLs:all",
    "header:Subject:asText:all",
)

# A message may carry messages; each level holds fewer octets than the one around it, so this only bounds the work.
_MAX_NESTED: Final = 8


def check_reading(octets: bytes) -> None:
    """Read the octets in every way there is, and assert what must hold; attached messages likewise."""
    waiting = [octets]
    for _ in range(_MAX_NESTED):
        if not waiting:
            break
        message = parse(waiting.pop())
        _check_parts(message)
        _check_email(message)
        _check_text(message)
        _check_facts(message)
        waiting += [part.content() for part in message.root.walk() if part.type.startswith("message/")]


def _check_parts(message: Message) -> None:
    spans = [(part.start, part.end) for part in message.root.walk() if not part.is_multipart]
    assert all(0 <= start <= end <= len(message.octets) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    for part in message.root.walk():
        assert all(part.start <= child.start and child.end <= part.end for child in part.subparts)
        assert all(field.start < field.end <= part.start for field in part.fields)
    part_ids = [part.part_id for part in message.root.walk() if part.part_id is not None]
    assert [str(number) for number in range(1, len(part_ids) + 1)] == part_ids
    assert all(_found(message, part_id) for part_id in part_ids)


def _found(message: Message, part_id: str) -> bool:
    part: Part | None = message.part(part_id)
    return part is not None and part.part_id == part_id


def _check_email(message: Message) -> None:
    email = email_json(
        message,
        properties=[*sorted(CONTENT_PROPERTIES), *_FORMS],
        body_properties=[*sorted(BODY_PROPERTIES), *_FORMS],
        fetch_all=True,
    )
    json.dumps(email, ensure_ascii=False).encode("utf-8")
    subject: JSON = email["subject"]
    if isinstance(subject, str):
        assert base_subject(base_subject(subject)) == base_subject(subject)
    email_json(message, properties=["bodyValues"], fetch_all=True, max_body_value_octets=7)


def _check_text(message: Message) -> None:
    reading = readable_text(message)
    assert len(preview_of(reading)) <= 256
    segmented = segmented_text(message)
    assert segmented.text == reading.text
    assert "".join(segmented.text[piece.start : piece.end] for piece in segmented.segments) == segmented.text
    for text in (reading.text, reading.reason, *(hidden.text for hidden in reading.hidden)):
        text.encode("utf-8")
        _check_cleaning(text)


def _check_facts(message: Message) -> None:
    assert len({(flag.fact, flag.where) for flag in flags(message)}) == len(flags(message))
    authentication(message, "mx.example.org")
    for finding in link_findings(message, readable_text(message)):
        _check_cleaning(f"{finding.host} {finding.shown}")
    for part in message.root.walk():
        found = attachment_text(part, 1_000)
        assert len(found.text) <= 1_000
        found.text.encode("utf-8")


def _check_cleaning(text: str) -> None:
    cleaned, line = clean(text).text, clean_line(text).text
    assert clean(cleaned).text == cleaned
    assert not any(unicodedata.category(character) in {"Cc", "Cs"} for character in cleaned if character not in "\n\t")
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in line)
    counter = iter(range(256))
    fence = Fence(lambda count: bytes([next(counter)]) * count, text)
    lines = fence.around("message", text).split("\n")
    assert all(row.startswith(fence.nonce) for row in lines)
    assert fence.nonce not in text
