import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import ijson

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_i_json_is_read_as_it_stands(value: object) -> None:
    try:
        octets = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert value == ijson.load(octets)


@given(st.binary())
def test_any_octets_give_a_value_or_the_one_error(octets: bytes) -> None:
    try:
        ijson.load(octets)
    except ijson.NotIJson:
        return


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"{",
        b"\xff",
        b'"\\ud800"',
        b'{"\\udfff": 1}',
        b'{"a": 1, "a": 2}',
        b'[{"a": {"b": 1, "b": 1}}]',
        b"NaN",
        b"[Infinity]",
        b"1" * 41,
        b"[1e999]",
        b"-1.5e400",
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"[" * 200_000,
    ],
)
def test_what_two_readers_could_read_differently_is_refused(octets: bytes) -> None:
    with pytest.raises(ijson.NotIJson):
        ijson.load(octets)


def test_brackets_in_strings_are_no_nesting() -> None:
    text = "[" * 1_000 + '\\"'
    assert [text] == ijson.load(json.dumps([text]).encode())
    assert [1] == ijson.load(b"[1]")
    assert json.loads("[" * 64 + "]" * 64) == ijson.load(b"[" * 64 + b"]" * 64)


@pytest.mark.parametrize("value", [b"{}", b"[]", b"1", b'{"a":1}'])
def test_more_values_than_a_request_needs_are_refused_before_one_is_made(value: bytes) -> None:
    many = b"[" + b",".join([value] * ijson.MAX_VALUES) + b"]"
    with pytest.raises(ijson.NotIJson, match=f"more than {ijson.MAX_VALUES} values"):
        ijson.load(many)
    few = many[: len(many) // 10 + 1].rpartition(b",")[0] + b"]"
    assert isinstance(ijson.load(few), list)


def test_a_string_without_an_end_is_read_once() -> None:
    """Were it begun anew at each quote, this test would not end."""
    with pytest.raises(ijson.NotIJson):
        ijson.load(b"[" * 65 + b'"' + b'\\"' * 3_000_000)


def test_what_stands_in_strings_is_no_value() -> None:
    text = '[{,:"' * ijson.MAX_VALUES
    assert text == ijson.load(json.dumps(text).encode())


def test_an_error_never_repeats_the_content() -> None:
    with pytest.raises(ijson.NotIJson) as caught:
        ijson.load(b'{"password": "hunter2", "password": "hunter2"}')
    assert "hunter2" not in str(caught.value)
