import base64
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.tokens import Token, TokenKind, bearer_of, id_of_token, new_token, parse_token


def test_a_token_has_its_documented_form_and_is_read_back() -> None:
    token = new_token(TokenKind.READER, secrets.token_bytes)
    kind, token_id, secret, check = token.text.split("_")
    assert ("mwr", 8, 32, 8) == (kind, len(token_id), len(secret), len(check))
    assert token == parse_token(token.text)
    assert token_id == token.id


def test_the_secret_is_hidden_in_repr() -> None:
    token = new_token(TokenKind.PROPOSER, secrets.token_bytes)
    assert token.text not in repr(token)
    assert token.text.split("_")[2] not in repr(token)


def test_only_the_same_token_matches_a_stored_digest() -> None:
    token, other = (new_token(TokenKind.READER, secrets.token_bytes) for _ in range(2))
    assert token.matches(token.digest())
    assert not other.matches(token.digest())


@given(st.data())
def test_a_token_with_one_character_changed_is_none(data: st.DataObject) -> None:
    text = new_token(TokenKind.READER, lambda octets: bytes(range(octets))).text
    at = data.draw(st.integers(0, len(text) - 1))
    character = data.draw(st.characters(codec="ascii").filter(lambda drawn: drawn != text[at]))
    assert parse_token(text[:at] + character + text[at + 1 :]) is None


@given(st.text())
def test_any_text_gives_a_token_or_none(text: str) -> None:
    assert parse_token(text) is None or isinstance(parse_token(text), Token)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (None, None),
        ("", None),
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic " + base64.b64encode(b"any:abc").decode(), "abc"),
        ("Basic " + base64.b64encode(b"any").decode(), None),
        ("Basic !!!", None),
        ("Basic " + base64.b64encode(b"\xff:\xff").decode(), None),
        ("Digest abc", None),
    ],
)
def test_the_secret_of_an_authorization_field(field: str | None, expected: str | None) -> None:
    assert expected == bearer_of(field)


def test_a_whole_token_or_its_beginning_stands_for_its_id() -> None:
    token = new_token(TokenKind.READER, secrets.token_bytes)
    for text in (token.text, token.text[:-1], f"mwr_{token.id}", f"mwp_{token.id}_x", token.id):
        assert token.id == id_of_token(text)
    assert "mwr_short" == id_of_token("mwr_short")
