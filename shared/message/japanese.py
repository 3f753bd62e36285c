"""ISO-2022-JP and EUC-JP as mail programs write them: with the characters that Windows adds (①, ㈱, 髙).

No standard has them there, every reader shows them (WHATWG Encoding §12), and Python's codecs do not know them. They
stand where code page 932 has them, so each pair of octets is looked up there.
"""

import re
from typing import Final

# A pair takes a microsecond; of a longer text what no codec knows becomes U+FFFD.
_MOST_OCTETS: Final = 1024 * 1024

_ESCAPE: Final = re.compile(rb"\x1b(\$[@B]|\$\(D|\([BIJ])")
_ASCII, _ROMAN, _KATAKANA, _SUPPLEMENT = b"(B", b"(J", b"(I", b"$(D"
# A line ends in ASCII, whatever went before (RFC 1468).
_PAIRED: Final = re.compile(rb"([\x21-\x7e]{2})|(\n.*\Z)|([\x00-\x20])", re.DOTALL)
_EUC: Final = re.compile(rb"([\x00-\x7f]+)|([\xa1-\xfe]{2})|\x8e([\xa1-\xdf])|(\x8f[\xa1-\xfe]{2})")
_FIRST_KATAKANA: Final = "\uff61"


def text_of(octets: bytes, codec: str) -> str | None:
    """Return the text where octets that Python's codec of this name refuses are such Japanese, else None."""
    reader = {"iso2022_jp_ext": _iso_2022_jp, "euc_jp": _euc_jp}.get(codec)
    if reader is None or len(octets) > _MOST_OCTETS:
        return None
    try:
        return reader(octets)
    except UnicodeError:
        return None


def _iso_2022_jp(octets: bytes) -> str:
    first, *rest = _ESCAPE.split(octets)
    read = list[str]()
    for escape, stretch in zip([_ASCII, *rest[::2]], [first, *rest[1::2]], strict=True):
        if b"\x1b" in stretch:
            # Another set than those that mail is written in.
            raise _not_japanese(stretch, stretch.index(b"\x1b"))
        if escape == _ASCII:
            read.append(stretch.decode("ascii"))
        elif escape in {_ROMAN, _KATAKANA, _SUPPLEMENT}:
            read.append((b"\x1b" + escape + stretch).decode("iso2022_jp_ext"))
        else:
            read += _pairs(stretch)
    return "".join(read)


def _pairs(stretch: bytes) -> list[str]:
    read, position = list[str](), 0
    while position < len(stretch):
        found = _PAIRED.match(stretch, position)
        if found is None:
            raise _not_japanese(stretch, position)
        pair = found[1]
        read.append(found[0].decode("ascii") if pair is None else _of_pair(pair[0], pair[1]))
        position = found.end()
    return read


def _euc_jp(octets: bytes) -> str:
    read, position = list[str](), 0
    while position < len(octets):
        found = _EUC.match(octets, position)
        if found is None:
            raise _not_japanese(octets, position)
        plain, pair, katakana, supplement = found.groups()
        if pair is not None:
            read.append(_of_pair(pair[0] & 0x7F, pair[1] & 0x7F))
        elif katakana is not None:
            read.append(chr(ord(_FIRST_KATAKANA) + katakana[0] - 0xA1))
        else:
            read.append((plain or supplement).decode("euc_jp"))
        position = found.end()
    return "".join(read)


def _of_pair(row: int, cell: int) -> str:
    """The character of a place in JIS X 0208, by the arithmetic that made Shift_JIS of it (JIS X 0208 annex 1)."""
    lead = (row - 0x21) // 2 + (0x81 if row < 0x5F else 0xC1)  # noqa: PLR2004 - see above
    trail = cell + (0x7E if row % 2 == 0 else 0x1F + (cell >= 0x60))  # noqa: PLR2004 - see above
    return bytes((lead, trail)).decode("cp932")


def _not_japanese(octets: bytes, position: int) -> UnicodeError:
    return UnicodeDecodeError("japanese", octets, position, position + 1, "no pair of octets")
