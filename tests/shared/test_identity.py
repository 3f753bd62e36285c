import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import identity


def test_an_email_id_is_m_and_32_characters_of_lower_case_base32hex_of_the_sha256() -> None:
    digest = hashlib.sha256(b"abc").digest()
    # RFC 4648 §7 alphabet, worked out by hand for the first octets: ba7816bf8f
    assert digest.hex().startswith("ba7816bf8f")
    assert identity.email_id(digest).startswith("Mn9s1dfsf")
    assert 33 == len(identity.email_id(digest))
    assert identity.email_id(digest)[1:] == identity.blob_id(digest)[1:]
    assert identity.blob_id(digest)[0] == "B"


@given(st.binary())
def test_every_id_made_is_recognised_and_the_same_octets_give_the_same_id(octets: bytes) -> None:
    made = identity.email_id(identity.message_digest(octets))
    assert identity.is_email_id(made)
    assert made == identity.email_id(identity.message_digest(octets))


@pytest.mark.parametrize(
    "untrusted",
    ["", "M", "M" + "0" * 31, "M" + "0" * 33, "M" + "w" * 32, "m" + "0" * 32, "X" + "0" * 32, "M" + "0" * 32 + "\n"],
)
def test_anything_else_is_not_an_email_id(untrusted: str) -> None:
    assert not identity.is_email_id(untrusted)


def test_an_unprovable_id_cannot_be_proposed_and_differs_by_each_part() -> None:
    ids = {
        identity.unprovable_email_id("F1", 1, 1),
        identity.unprovable_email_id("F1", 1, 2),
        identity.unprovable_email_id("F1", 2, 1),
        identity.unprovable_email_id("F2", 1, 1),
    }
    assert 4 == len(ids)
    assert not any(identity.is_email_id(made) for made in ids)
