"""The classes of difference between readers of real mail, each by a rule; `docs/real-mail.md` explains them."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]+|\x7f")
_BLANKS_AT_LINE_END: Final = re.compile(r"[ \t]+$", re.MULTILINE)
_ENCODED_WORD_IN_QUOTES: Final = re.compile(rb'"[^"\r\n]*=\?[^"\r\n]*\?="')
_ZONE_OF_WORDS: Final = re.compile(
    rb"^Date:[^\n]*:[0-9]{2}\s+(?:[A-Za-z]+ [A-Za-z ]+|GMT\+|\+-|[0-9]{4,5}\s*$|PM )", re.MULTILINE
)

_YEAR_BEFORE_1900: Final = re.compile(rb"^Date:[^\n]* 0[0-9]{3} ", re.MULTILINE)
_SISTER_CHARSET: Final = re.compile(rb"charset=\"?(?:gb2312|ks_c_5601)", re.IGNORECASE)
_CHARSET_IN_HTML: Final = re.compile(rb"<meta[^>]{0,200}charset=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Case:
    """One field of one message where two readers differ."""

    field: str
    octets: bytes
    ours: Any
    theirs: Any


def _header(octets: bytes) -> bytes:
    return octets.replace(b"\r\n", b"\n").partition(b"\n\n")[0]


def _has_8_bit_header(case: Case) -> bool:
    return not _header(case.octets).isascii() and "\ufffd" in str(case.ours)


def _same_but(change: Callable[[str], str]) -> Callable[[Case], bool]:
    def matches(case: Case) -> bool:
        return bool([change(text) for text in case.ours] == [change(text) for text in case.theirs])

    return matches


def _windows(text: str) -> str:
    return re.sub("[\x80-\x9f]", lambda found: found[0].encode("latin-1").decode("cp1252", "replace"), text)


def _without_blanks(text: str) -> str:
    return _BLANKS_AT_LINE_END.sub("", text).rstrip("\n")


def _ascii_only(text: str) -> str:
    return " ".join(_NOT_ASCII.sub("", text.replace("?", "")).split())


def _begins_alike(case: Case) -> bool:
    """One of the two goes on where the other ends."""
    return len(case.ours) == len(case.theirs) and all(
        mine.rstrip().startswith(his.rstrip()) or his.rstrip().startswith(mine.rstrip())
        for mine, his in zip(map(_ascii_only, case.ours), map(_ascii_only, case.theirs), strict=True)
    )


def _is_left_encoded(case: Case) -> bool:
    return (
        len(case.theirs) == 1
        and case.theirs[0][:60].encode("utf-8", "replace") in case.octets
        and (case.ours[0][:60].encode("utf-8", "replace") not in case.octets)
    )


def _is_quoted_printable(case: Case) -> bool:
    return b"encoding: quoted-printable" in case.octets.lower()


def _names(case: Case) -> tuple[list[str], list[str]]:
    return [name for name, _ in case.ours], [name for name, _ in case.theirs]


def _addresses_alike(case: Case) -> bool:
    return [spec for _, spec in case.ours] == [spec for _, spec in case.theirs]


# The first rule that fits names the class.
_RULES: Final[Sequence[tuple[str, str, Callable[[Case], object]]]] = (
    (
        "subject",
        "blank at the end",
        lambda case: case.ours and case.theirs and case.ours.strip() == case.theirs.strip(),
    ),
    ("subject", "octets that are no UTF-8", _has_8_bit_header),
    ("subject", "windows-1252 labelled iso-8859-1", lambda case: case.ours == _windows(case.theirs or "")),
    ("subject", "encoded-words in iso-2022-jp cut short", lambda case: b"=?iso-2022-jp?" in case.octets.lower()),
    ("subject", "octets that the charset lacks", lambda case: "\ufffd" in case.ours),
    ("from", "octets that are no UTF-8", _has_8_bit_header),
    (
        "from",
        "name in a comment",
        lambda case: _addresses_alike(case) and any(mine and not his for mine, his in zip(*_names(case), strict=True)),
    ),
    (
        "from",
        "blanks around or within the name",
        lambda case: (
            _addresses_alike(case) and all(mine.split() == his.split() for mine, his in zip(*_names(case), strict=True))
        ),
    ),
    ("from", "encoded-word in a quoted-string", lambda case: _ENCODED_WORD_IN_QUOTES.search(_header(case.octets))),
    ("from", "encoded-word in an address", lambda case: any("=?" in spec for _, spec in case.ours)),
    ("from", "encoded-word inside a word", lambda case: any("=?" in name for name, _ in case.ours)),
    ("from", "neither name nor address", lambda case: not case.ours),
    ("from", "no address by any grammar", lambda case: not _addresses_alike(case)),
    (
        "date",
        "zone that has no meaning",
        lambda case: case.ours is None and _ZONE_OF_WORDS.search(_header(case.octets)),
    ),
    (
        "date",
        "year before 1900",
        lambda case: _YEAR_BEFORE_1900.search(_header(case.octets)),
    ),
    ("date", "no date-time of RFC 5322", lambda case: case.ours is None),
    ("text", "blanks at line ends of quoted-printable", _same_but(_without_blanks)),
    ("text", "windows-1252 labelled iso-8859-1", _same_but(lambda text: _without_blanks(_windows(text)))),
    ("text", "NUL", _same_but(lambda text: _without_blanks(_windows(text.replace("\0", ""))))),
    ("text", "octets that the label does not allow", _same_but(_ascii_only)),
    ("text", "base64 that the other reader leaves encoded", _is_left_encoded),
    ("text", "octets of a larger sister charset", lambda case: _SISTER_CHARSET.search(case.octets)),
    ("text", "equals signs that begin no escape", lambda case: b"==" in case.octets and _is_quoted_printable(case)),
    ("text", "what follows the end of base64", _begins_alike),
    ("text", "charset named in the HTML only", lambda case: _CHARSET_IN_HTML.search(case.octets.replace(b"=3D", b"="))),
    ("text", "number of texts", lambda case: len(case.ours) != len(case.theirs)),
    (
        "attachments",
        "message/* that is no message",
        lambda case: len(case.ours) == len(case.theirs) and any(size == -1 for _, size in case.theirs),
    ),
    ("attachments", "file name with blanks and no quotes", lambda case: _names(case)[0] != _names(case)[1]),
    ("attachments", "base64 that does not end well", lambda case: b"base64" in case.octets),
)


def class_of(case: Case) -> str:
    """Return the name of the difference's class, or "unexplained"."""
    for field, name, matches in _RULES:
        if field == case.field and matches(case):
            return name
    return "unexplained"
