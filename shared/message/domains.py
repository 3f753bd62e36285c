"""Names of hosts as a person reads them, and how they can deceive: scripts mixed, letters that look alike.

The standard library suffices: Unicode's names of letters tell their script, and the letters that look like ASCII ones
are few. Punycode is decoded first (RFC 3492), so that `xn--80ak6aa92e.com` is judged by what it shows.
"""

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

# RFC 5321 §4.5.3.1.2: a domain has at most 255 octets.
MAX_HOST_CHARACTERS: Final = 255

_ENCODED: Final = "xn--"
_DOTS: Final = str.maketrans({"\u3002": ".", "\uff0e": ".", "\uff61": "."})  # IDNA: all four separate labels

# Letters whose usual glyph is that of an ASCII letter or nearly so, out of Unicode's confusables (UTS 39 §4): those of
# the scripts that domain names are registered in and readers of Latin mistake (Cyrillic, Greek, Armenian, Latin beyond
# ASCII). Not the whole file: thousands of its entries are ligatures, mathematical letters (NFKC folds them) and scripts
# that no registry takes.
_LOOK_ALIKES: Final = {
    "a": "аαɑ",
    "b": "ьƅ",
    "c": "сᴄ",
    "d": "ԁժ",
    "e": "еєε",
    "g": "ɡցǥ",
    "h": "һհ",
    "i": "іιıɩ",
    "j": "јϳյ",
    "k": "кκ",
    "l": "ӏ",
    "m": "м",
    "n": "пηոռ",
    "o": "оοσօᴏ",
    "p": "рρ",
    "q": "ԛզգ",
    "r": "гᴦ",
    "s": "ѕꜱ",
    "t": "тτ",
    "u": "υսʋᴜ",
    "v": "ѵνᴠ",
    "w": "ԝωաᴡ",
    "x": "хχ",
    "y": "уүγʏ",
    "z": "ᴢ",
}
_LOOKS_LIKE: Final = {ord(letter): plain for plain, letters in _LOOK_ALIKES.items() for letter in letters}

# In many fonts; the order matters, since the pairs become the letters that they imitate.
_LOOK_LIKE_ASCII: Final = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("0", "o"), ("1", "l"), ("i", "l"))

# UTS 39 §5.2, highly restrictive: scripts that one language writes together.
_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)

_ADDRESS: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[0-9]{4,10}|0x[0-9a-f]{1,8}|\[[0-9a-f:.]++\]")


class DomainConcern(StrEnum):
    """How a host's name may deceive."""

    MIXED_SCRIPTS = "mixedScripts"
    LOOK_ALIKE = "lookAlike"
    NOT_DECODABLE = "notDecodable"
    ADDRESS_INSTEAD_OF_NAME = "addressInsteadOfName"


def readable_host(host: str) -> str:
    """Return a host's name as a person would read it: lower case, compatibility forms folded, punycode decoded.

    A label that is no punycode stays as it stands. Idempotent.
    """
    folded = unicodedata.normalize("NFKC", host[:MAX_HOST_CHARACTERS].translate(_DOTS)).lower().rstrip(".")
    return ".".join(_decoded(label) or label for label in folded.split("."))


def _decoded(label: str) -> str | None:
    """The label itself, decoded if it is encoded; None where it is broken or hides what is no name."""
    if not label.startswith(_ENCODED):
        return label
    try:
        decoded = label.removeprefix(_ENCODED).encode("ascii").decode("punycode")
    except (UnicodeError, OverflowError, ValueError):
        return None
    is_name = decoded == unicodedata.normalize("NFKC", decoded).lower() and not decoded.isascii()
    return decoded if is_name and all(_is_of_a_name(character) for character in decoded) else None


def _is_of_a_name(character: str) -> bool:
    return character == "-" or unicodedata.category(character)[0] in "LMN"


class KnownHosts:
    """Names that the reader trusts, such as the recipients' own, held by what they look like."""

    __slots__ = ("_by_skeleton",)

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._by_skeleton: dict[str, set[str]] = {}
        for host in hosts:
            name = readable_host(host).removeprefix("www.")
            if name:
                self._by_skeleton.setdefault(skeleton(name), set()).add(name)

    def imitated_by(self, name: str) -> str | None:
        """Return which of these a readable name, or a domain that it is in, looks like and is not; None for none."""
        looks = skeleton(name.removeprefix("www."))
        while looks:
            for known in sorted(self._by_skeleton.get(looks, ())):
                if not is_same_or_within(name, known):
                    return known
            looks = looks.partition(".")[2]
        return None


NO_HOSTS: Final = KnownHosts()


def domain_concerns(host: str, known_hosts: KnownHosts = NO_HOSTS) -> tuple[DomainConcern, ...]:
    """Return how a host's name may deceive, in the order of `DomainConcern`.

    A name that looks like one of `known_hosts`, and is not within it, is a look-alike. So is one that spells ASCII with
    the letters of another script.
    """
    name = readable_host(host)
    if _ADDRESS.fullmatch(name):
        return (DomainConcern.ADDRESS_INSTEAD_OF_NAME,)
    labels = name.split(".")
    found: set[DomainConcern] = set()
    if any(_is_mixed(label) for label in labels):
        found.add(DomainConcern.MIXED_SCRIPTS)
    if _imitates_latin(labels) or known_hosts.imitated_by(name) is not None:
        found.add(DomainConcern.LOOK_ALIKE)
    if any(label.startswith(_ENCODED) for label in labels):
        found.add(DomainConcern.NOT_DECODABLE)
    return tuple(concern for concern in DomainConcern if concern in found)


def script_of(character: str) -> str | None:
    """Return the script of a letter by the first word of its Unicode name, or None for what all scripts share."""
    if unicodedata.category(character)[0] != "L":
        return None
    script = unicodedata.name(character, "UNNAMED").split(maxsplit=1)[0]
    if script in {"KATAKANA-HIRAGANA", "MODIFIER"}:
        return None
    return "CJK" if script == "IDEOGRAPHIC" else script


def _scripts(text: str) -> set[str]:
    return {script for character in text if (script := script_of(character)) is not None}


def _is_mixed(label: str) -> bool:
    if label.isascii():
        return False
    scripts = _scripts(label)
    return len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)


def _imitates_latin(labels: list[str]) -> bool:
    """A label of another script that spells ASCII, under a top domain that is not of that script."""
    top = _scripts(labels[-1])
    for label in labels:
        scripts = _scripts(label)
        if label.isascii() or scripts <= {"LATIN"} or (scripts & top):
            continue
        if label.translate(_LOOKS_LIKE).isascii():
            return True
    return False


def skeleton(name: str) -> str:
    """Return what a readable name looks like at a glance: two names of one skeleton can be taken for each other."""
    bare = "".join(c for c in unicodedata.normalize("NFD", name) if not unicodedata.combining(c)).translate(_LOOKS_LIKE)
    for seen, taken_for in _LOOK_LIKE_ASCII:
        bare = bare.replace(seen, taken_for)
    return bare


def is_same_or_within(name: str, other: str) -> bool:
    """Whether two readable names are one host, `www.` aside, or one is within the other's domain."""
    name, other = name.removeprefix("www."), other.removeprefix("www.")
    return name == other or name.endswith(f".{other}") or other.endswith(f".{name}")
