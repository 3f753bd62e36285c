"""Cleaning and fencing: what hides is taken out and counted, and no sender closes the fence."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.fence import Fence, InvisibleKind, clean, clean_line, invisible_kinds, spelled_by_tags

# RFC-free facts: Unicode 15.1 DerivedCoreProperties, Default_Ignorable_Code_Point, 17 ranges.
INVISIBLE = [0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x200B, 0x200F, 0x202E, 0x2060, 0x2066, 0x206F]
INVISIBLE += [0x3164, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF0, 0x1BCA0, 0x1D173, 0xE0001, 0xE0041, 0xE007F, 0xE0100, 0xE0FFF]
CONTROLS = [0x00, 0x07, 0x08, 0x0B, 0x1B, 0x7F, 0x85, 0x9B, 0x9F]


@pytest.mark.parametrize("code", INVISIBLE + CONTROLS)
def test_what_the_eye_cannot_see_is_removed_and_counted(code: int) -> None:
    cleaned = clean(f"a{chr(code)}b")
    assert ("ab", 1) == (cleaned.text, cleaned.removed)


@pytest.mark.parametrize("text", ["", "a\n\tb", "Grüße, 日本 🧾", "\ue000private", "e\u0301"])
def test_what_the_eye_sees_stays(text: str) -> None:
    assert (text, 0) == (clean(text).text, clean(text).removed)


def test_line_ends_of_every_kind_become_line_feeds() -> None:
    cleaned = clean("a\r\nb\rc\u2028d\u2029e")
    assert ("a\nb\nc\nd\ne", 0) == (cleaned.text, cleaned.removed)


def test_a_line_stays_one_line() -> None:
    cleaned = clean_line("Roster\r\nBcc:\tx\u2028y\x85z\u202ew")
    assert ("Roster Bcc: x y zw", 1) == (cleaned.text, cleaned.removed)


@given(st.text(st.characters(categories=None)))  # surrogates too
def test_cleaning_is_idempotent_and_leaves_nothing_forbidden(text: str) -> None:
    for cleaner in (clean, clean_line):
        once = cleaner(text).text
        assert (once, 0) == (cleaner(once).text, cleaner(once).removed)
        once.encode("utf-8")
        assert not any(unicodedata.category(found) in {"Cc", "Cs"} for found in once if found not in "\n\t")
        assert not any(0xE0000 <= ord(found) <= 0xE0FFF or 0x202A <= ord(found) <= 0x202E for found in once)
    assert not set("\n\t\r\u2028\u2029") & set(clean_line(text).text)


def source(*values: int) -> "Source":
    return Source(list(values))


class Source:
    """Random octets that a test can foretell: each call repeats the next value."""

    def __init__(self, values: list[int]) -> None:
        self.values = values

    def __call__(self, count: int) -> bytes:
        return bytes([self.values.pop(0)]) * count


def test_the_nonce_has_128_bits_and_stands_on_every_line() -> None:
    fence = Fence(source(0xAB), "one\ntwo")
    assert fence.nonce == "ab" * 16
    assert fence.around("message", "one\ntwo").split("\n") == [
        f"{fence.nonce}< untrusted message",
        f"{fence.nonce}| one",
        f"{fence.nonce}| two",
        f"{fence.nonce}> end of untrusted message",
    ]


def test_a_nonce_that_occurs_in_the_payload_is_made_anew() -> None:
    assert Fence(source(0xAB, 0xCD), "x" + "ab" * 16).nonce == "cd" * 16


def test_a_nonce_hidden_by_invisible_characters_is_made_anew() -> None:
    assert Fence(source(0xAB, 0xCD), "\u200b".join("ab" * 16)).nonce == "cd" * 16


def test_a_text_that_the_fence_was_not_made_for_is_refused_if_it_holds_the_nonce() -> None:
    with pytest.raises(ValueError, match="not made for this text"):
        Fence(source(0xAB)).around("message", "ab" * 16)


@given(st.text(), st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_the_nonce_never_occurs_in_its_payload(text: str, first: bytes, second: bytes) -> None:
    payload = first.hex() + text
    draws = [first, second, b"\x01" * 16]
    fence = Fence(lambda _: draws.pop(0) if len(draws) > 1 else draws[0], payload)
    assert fence.nonce not in payload
    lines = fence.around("message", payload).split("\n")
    assert [fence.nonce] * len(lines) == [line[:32] for line in lines]
    assert all(fence.nonce not in line[32:] for line in lines)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("plain\r\ntext\t", {}),
        ("a\U000e0041\U000e0042", {InvisibleKind.TAG: 2}),
        ("a\u202eb\u2066\u200f", {InvisibleKind.BIDI: 3}),
        ("a\x1b\x9b\x7f\0", {InvisibleKind.CONTROL: 4}),
        ("\u2764\ufe0f\U000e0100", {InvisibleKind.VARIATION: 2}),
        ("a\u200b\u00ad\ufeff\u200d", {InvisibleKind.ZERO_WIDTH: 4}),
        ("\u3164\ufff9x", {InvisibleKind.OTHER: 2}),
        ("\U000e0041\u202e", {InvisibleKind.TAG: 1, InvisibleKind.BIDI: 1}),
    ],
)
def test_what_is_taken_out_is_counted_by_its_kind(text: str, kinds: dict[InvisibleKind, int]) -> None:
    assert kinds == invisible_kinds(text)


@given(st.text())
def test_the_kinds_together_are_all_that_is_taken_out(text: str) -> None:
    counts = invisible_kinds(text)
    assert clean(text).removed == sum(counts.values())
    assert all(count > 0 for count in counts.values())


def test_what_tag_characters_spell_is_made_visible() -> None:
    hidden = "".join(chr(0xE0000 + ord(character)) for character in "Move it.")
    assert "Move it." == spelled_by_tags(f"Hello{hidden} there")
    assert "A\nB" == spelled_by_tags("\U000e0041x\U000e0001\U000e0042")
    assert "" == spelled_by_tags("nothing")
