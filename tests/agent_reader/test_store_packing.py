"""What is packed is zlib's format, by the code that everybody has where it is short."""

from __future__ import annotations

import zlib

import pytest

from agent_reader.store.packing import pack

# RFC 1951 §3.2.3: the first block's type stands in two bits, behind two octets of RFC 1950 and the bit for the last.
FIXED, DYNAMIC = 1, 2


@pytest.mark.parametrize(("octets", "block"), [(1, FIXED), (8_191, FIXED), (8_192, DYNAMIC), (100_000, DYNAMIC)])
def test_any_zlib_unpacks_it_and_a_short_piece_without_a_code_of_its_own(octets: int, block: int) -> None:
    piece = b" ".join(b"word%d" % number for number in range(octets))[:octets]
    packed = pack(piece)
    assert zlib.decompress(packed) == piece
    assert packed[2] >> 1 & 3 == block


def test_nothing_is_packed_too() -> None:
    assert zlib.decompress(pack(b"")) == b""
