"""From octets to text by the charset that a sender named, out of a closed table.

Names come from hostile mail: Python's own codec search would import modules by them and remember each unknown one for
ever, and some codecs (punycode, idna, zlib) are no charsets at all. So only this table is asked. RFC 2045 §5,
RFC 8621 §4.1.4.
"""

import re
from dataclasses import dataclass
from encodings.aliases import aliases
from typing import Final

from shared.message.japanese import text_of

# No registered charset name comes near; a longer one cannot be in the table.
_MAX_NAME: Final = 64

_CODECS: Final = frozenset(
    [
        "ascii",
        "big5",
        "big5hkscs",
        "cp037",
        "cp437",
        "cp500",
        "cp720",
        "cp737",
        "cp775",
        "cp850",
        "cp852",
        "cp855",
        "cp856",
        "cp857",
        "cp858",
        "cp860",
        "cp861",
        "cp862",
        "cp863",
        "cp864",
        "cp865",
        "cp866",
        "cp869",
        "cp874",
        "cp932",
        "cp949",
        "cp950",
        "cp1006",
        "cp1026",
        "cp1125",
        "cp1140",
        "cp1250",
        "cp1251",
        "cp1252",
        "cp1253",
        "cp1254",
        "cp1255",
        "cp1256",
        "cp1257",
        "cp1258",
        "euc_jp",
        "euc_jis_2004",
        "euc_jisx0213",
        "euc_kr",
        "gb18030",
        "gb2312",
        "gbk",
        "hp_roman8",
        "hz",
        "iso2022_jp",
        "iso2022_jp_1",
        "iso2022_jp_2",
        "iso2022_jp_2004",
        "iso2022_jp_3",
        "iso2022_jp_ext",
        "iso2022_kr",
        "iso8859_10",
        "iso8859_11",
        "iso8859_13",
        "iso8859_14",
        "iso8859_15",
        "iso8859_16",
        "iso8859_2",
        "iso8859_3",
        "iso8859_4",
        "iso8859_5",
        "iso8859_6",
        "iso8859_7",
        "iso8859_8",
        "iso8859_9",
        "johab",
        "koi8_r",
        "koi8_t",
        "koi8_u",
        "kz1048",
        "latin_1",
        "mac_cyrillic",
        "mac_greek",
        "mac_iceland",
        "mac_latin2",
        "mac_roman",
        "mac_turkish",
        "ptcp154",
        "shift_jis",
        "shift_jis_2004",
        "shift_jisx0213",
        "tis_620",
        "utf_7",
        "utf_8",
        "utf_16",
        "utf_16_be",
        "utf_16_le",
        "utf_32",
        "utf_32_be",
        "utf_32_le",
    ]
)

# Where senders name a charset and write its larger sister (as browsers read them, WHATWG Encoding).
_WIDENED: Final = {
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "iso8859_11": "cp874",
    "tis_620": "cp874",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "iso2022_jp": "iso2022_jp_ext",
}

_MORE_NAMES: Final = {
    "ansix341968": "ascii",
    "ksc56011987": "cp949",
    "ksc56011989": "cp949",
    "ksc5601": "cp949",
    "ksx1001": "cp949",
    "windows949": "cp949",
    "uhc": "cp949",
    "windows31j": "cp932",
    "windows932": "cp932",
    "xsjis": "cp932",
    "mskanji": "cp932",
    "xeucjp": "euc_jp",
    "xgbk": "gb18030",
    "xbig5": "big5hkscs",
    "big5eten": "big5hkscs",
    "gb231280": "gb18030",
    "hzgb2312": "hz",
    "cp50220": "iso2022_jp_ext",
    "cp50221": "iso2022_jp_ext",
    "csiso2022jp": "iso2022_jp_ext",
    "iso2022jpms": "iso2022_jp_ext",
    "cp51932": "euc_jp",
    "eucjpms": "euc_jp",
    "iso88598i": "iso8859_8",
    "iso88598e": "iso8859_8",
    "iso88596i": "iso8859_6",
    "koi8": "koi8_r",
    "koi8ru": "koi8_u",
    "unicode11utf7": "utf_7",
    "unicode11utf8": "utf_8",
    "utf8mb4": "utf_8",
    "xunicode20utf8": "utf_8",
    "macintosh": "mac_roman",
    "xmacroman": "mac_roman",
    "xmaccyrillic": "mac_cyrillic",
    "ucs2": "utf_16",
    "iso10646ucs2": "utf_16",
    "iso10646ucs4": "utf_32",
    "windows874": "cp874",
    "dos874": "cp874",
}


def _plain_name(name: str) -> str:
    """`ISO_8859-1`, `iso 8859-1` and `iso8859_1` are one name."""
    return "".join(character for character in name.lower() if character.isascii() and character.isalnum())


def _charset_table() -> dict[str, str]:
    table = {_plain_name(codec): _WIDENED.get(codec, codec) for codec in _CODECS}
    for alias, codec in aliases.items():
        if codec in _CODECS:
            table.setdefault(_plain_name(alias), _WIDENED.get(codec, codec))
    for number in (*range(1250, 1259), 866, 850, 437, 852, 855):
        for spelling in ("windows", "win", "xcp", "ms", "ibm", "xwindows"):
            table.setdefault(f"{spelling}{number}", f"cp{number}")
    return table | _MORE_NAMES


_TABLE: Final = _charset_table()

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

# The five octets that windows-1252 leaves undefined are the C1 controls that iso-8859-1 means by them.
_CP1252_OF_LATIN1: Final = {
    octet: bytes([octet]).decode("cp1252") for octet in range(0x80, 0xA0) if octet not in {0x81, 0x8D, 0x8F, 0x90, 0x9D}
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, and whether its octets did not fit their label (RFC 8621 §4.1.4 isEncodingProblem)."""

    text: str
    is_encoding_problem: bool


def codec_of(charset: str) -> str | None:
    """Return the Python codec for a charset's name, or None for a name that is not in the table."""
    if len(charset) > _MAX_NAME:
        return None
    usual = _TABLE.get(charset.lower().replace("-", "").replace("_", ""))
    if usual is not None:
        return usual
    name = _plain_name(charset)
    # What was nobody's standard yet when a program named it (RFC 2045 §6.3).
    return _TABLE.get(name) or _TABLE.get(name.removeprefix("x"))


def decode(octets: bytes, charset: str, *, guesses: bool = True) -> Decoded:
    """Return the text of the octets under a charset's name, guessing where the label is wrong or unknown.

    Never raises; never gives a surrogate. A guess (UTF-8 if the octets are that, else windows-1252) is flagged. Without
    `guesses` what does not fit a known charset becomes U+FFFD, as RFC 8621 §4.1.2.2 wants it in header fields.
    """
    codec = codec_of(charset)
    if codec is None:
        return Decoded(_best_guess(octets), is_encoding_problem=True)
    if codec in {"utf_16", "utf_32"}:
        codec = _with_byte_order(octets, codec)
    try:
        text = octets.decode(codec)
    except UnicodeError:
        return _decode_damaged(octets, codec, guesses=guesses)
    if codec != "utf_8" and not text.isascii():
        text = _SURROGATE.sub("\ufffd", text)
    if text.startswith("\ufeff") and codec.startswith("utf_"):
        text = text[1:]
    return Decoded(text, is_encoding_problem=False)


def _decode_damaged(octets: bytes, codec: str, *, guesses: bool) -> Decoded:
    if codec == "cp1252":
        return Decoded(_windows_1252(octets), is_encoding_problem=False)
    japanese = text_of(octets, codec)
    if japanese is not None:
        return Decoded(japanese, is_encoding_problem=False)
    if codec == "ascii" and guesses:
        return Decoded(_best_guess(octets), is_encoding_problem=True)
    if codec == "utf_8" and guesses and octets.decode("utf-8", "ignore").isascii():
        # Not one well-formed sequence: the octets are of another charset, not UTF-8 with some damage.
        return Decoded(_windows_1252(octets), is_encoding_problem=True)
    text = octets.decode(codec, "replace")
    return Decoded(_SURROGATE.sub("\ufffd", text), is_encoding_problem=True)


def _best_guess(octets: bytes) -> str:
    try:
        return octets.decode("utf-8")
    except UnicodeError:
        return _windows_1252(octets)


def _windows_1252(octets: bytes) -> str:
    return octets.decode("latin-1").translate(_CP1252_OF_LATIN1)


def _with_byte_order(octets: bytes, codec: str) -> str:
    """Name the byte order: by the mark, else by where the zeros of Latin text stand, else big (RFC 2781 §4.3)."""
    width = 2 if codec == "utf_16" else 4
    little_mark, big_mark = "\ufeff".encode(f"{codec}_le"), "\ufeff".encode(f"{codec}_be")
    if octets.startswith(little_mark):
        return f"{codec}_le"
    if octets.startswith(big_mark):
        return f"{codec}_be"
    zeros_first, zeros_last = octets[::width].count(0), octets[width - 1 :: width].count(0)
    return f"{codec}_le" if zeros_last > zeros_first else f"{codec}_be"
