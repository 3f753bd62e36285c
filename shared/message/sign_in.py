"""Whether a message would let its reader in somewhere: a one-time code, a password reset, a sign-in link.

Whoever reads such mail can take over the account that it belongs to. What it says is weighed: words for such a thing in
the subject or near the beginning, something to use (a code beside the words, a link with a secret in it), and what such
mail says besides (it ends soon; you did not ask for it). It finds what is written plainly, in the languages below; a
sender who wants it to be missed can write so that it is. docs/sign-in-mail.md has the figures.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from shared.message.sign_in_words import (
    CODE_STEMS,
    CODE_WORDS,
    ENDS_SOON,
    LINK_STEMS,
    LINK_WORDS,
    NOT_ASKED,
    RESET_STEMS,
    RESET_WORDS,
    WEAK_CODE_STEMS,
    WEAK_CODE_WORDS,
)

# What such mail needs to say is said within this; the rest of a long text is about something else.
_MOST_CHARACTERS: Final = 4_000
_BEGINNING: Final = 700
# From words for a code to the code: a sentence, or a heading and an empty line.
_CODE_AFTER: Final = 170
_CODE_BEFORE: Final = 60
_MOST_PLACES: Final = 30
_MOST_LINKS: Final = 200

_ENOUGH: Final = 4

_ANSWER: Final = re.compile(r"\s*(?:re|aw|sv|vs|antw|odp|rv|res|ynt|回复|答复)\s*[:：]", re.IGNORECASE)
# The number on the back of a card is no code that was sent.
_OF_A_CARD: Final = re.compile(r"\bcvv\b|\bcvc\b|back of (?:the|your) card|rückseite", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Sayings:
    """Ways to say one thing in lower case, and stems of which each way has one; none where a search costs little."""

    ways: re.Pattern[str]
    stems: Sequence[str] = ()

    def may_be_in(self, lowered: str) -> bool:
        # Every message comes by here; a search for all ways costs a millisecond, one for the stems a twentieth of it.
        return not self.stems or any(stem in lowered for stem in self.stems)

    def are_in(self, lowered: str) -> bool:
        return self.may_be_in(lowered) and self.ways.search(lowered) is not None


def _sayings(ways: Iterable[str], stems: Iterable[str] = ()) -> _Sayings:
    return _Sayings(re.compile("|".join(map(_lowered, ways))), tuple(map(_lowered, stems)))


def _lowered(text: str) -> str:
    # Both of Turkish's letters are taken for i, as a search without regard to case takes them; the length stays.
    return text.replace("İ", "i").replace("ı", "i").lower()


_CODE: Final = _sayings(CODE_WORDS, CODE_STEMS)
_WEAK_CODE: Final = _sayings(WEAK_CODE_WORDS, WEAK_CODE_STEMS)
_RESET: Final = _sayings(RESET_WORDS, RESET_STEMS)
_LINK: Final = _sayings(LINK_WORDS, LINK_STEMS)
_SOON: Final = _sayings(ENDS_SOON)
_UNASKED: Final = _sayings(NOT_ASKED)

# Four to eight digits, also in groups, or capitals with digits; no year, amount, date, time or longer number.
_A_CODE: Final = re.compile(
    r"(?<![\w/€$£¥#+-])(?<!\d[.,:])(?:[A-Z]{1,3}-)?"
    r"(?!(?:19|20)\d\d\b(?![ -]?\d))"
    r"(?:\d{4,8}|\d{3}[ -]\d{3,4}|\d{2} \d{2} \d{2}(?: \d{2})?|\d(?: \d){3,7}"
    r"|(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,10}|[A-Z0-9]{3,5}-[A-Z0-9]{3,5})"
    r"(?![\w%€$£]|[.,:/-]\d| ?(?:€|EUR|USD|GBP|kr\b|zł|kg\b|%|円|元|원))"
)

_SECRET_NAMES: Final = frozenset(
    {
        "auth",
        "code",
        "confirmation_token",
        "hash",
        "invite",
        "jwt",
        "k",
        "key",
        "login_token",
        "magic",
        "nonce",
        "oobcode",
        "otp",
        "passcode",
        "reset",
        "reset_password_token",
        "secret",
        "sig",
        "signature",
        "t",
        "ticket",
        "token",
        "verification",
        "verificationcode",
    }
)
_SECRET: Final = re.compile(
    r"(?=[^\d]*\d)(?=[^a-zA-Z]*[a-zA-Z])[\w.~-]{16,}|[0-9a-f]{16,}|[A-Za-z0-9_-]{24,}", re.ASCII
)
_LEAST_NAMED_SECRET: Final = 6
_WIDE_MARKS: Final = {"，": ", ", "：": ": ", "、": ", ", "。": ". "}
_URL: Final = re.compile(r"https?://[^\s<>\"')\]]{4,2000}", re.IGNORECASE)


def is_sign_in_mail(untrusted_subject: str, untrusted_text: str, links: Iterable[str] = ()) -> bool:
    """Whether a message holds what lets somebody in: `links` are the URLs of its HTML, beside those in its text."""
    subject, text = _plain(untrusted_subject[:500]), _plain(untrusted_text[:_MOST_CHARACTERS])
    lowered_subject, lowered = _lowered(subject), _lowered(text)
    code = _code_weight(f"{subject}\n{text}", f"{lowered_subject}\n{lowered}")
    beginning = lowered[:_BEGINNING]
    said = max(_said(_RESET, lowered_subject, beginning), _said(_LINK, lowered_subject, beginning))
    if not (code or said):
        return False
    besides = int(_SOON.are_in(lowered)) + int(_UNASKED.are_in(lowered))
    # Who answers or discusses writes the words too.
    besides -= 2 if _ANSWER.match(subject) is not None else 0
    if code and besides + code >= _ENOUGH:
        return True
    if not said:
        return False
    urls = [*_URL.findall(text)[:_MOST_LINKS], *list(links)[:_MOST_LINKS]]
    return said + besides + (2 if any(map(_holds_secret, urls)) else 0) >= _ENOUGH


def _plain(text: str) -> str:
    # A wide comma parts a sentence; as a narrow one it would stand within a number.
    for wide, narrow in _WIDE_MARKS.items():
        text = text.replace(wide, narrow)
    return unicodedata.normalize("NFKC", text)


def _said(sayings: _Sayings, subject: str, beginning: str) -> int:
    return (3 if sayings.are_in(subject) else 0) or (2 if sayings.are_in(beginning) else 0)


def _code_weight(whole: str, lowered: str) -> int:
    """Two for the words, two for a code beside them; words that parcels have too count one."""
    for sayings, weight in ((_CODE, 2), (_WEAK_CODE, 1)):
        if not sayings.may_be_in(lowered):
            continue
        for number, place in enumerate(sayings.ways.finditer(lowered)):
            if number >= _MOST_PLACES:
                break
            around = whole[max(0, place.start() - _CODE_BEFORE) : place.end() + _CODE_AFTER]
            said = whole[place.start() : place.end()]
            if _A_CODE.search(around.replace(said, " ", 1)) and not _OF_A_CARD.search(around):
                return weight + 2
    return 0


def _holds_secret(url: str) -> bool:
    """Whether a link has a part that nobody could guess."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query or parts.fragment.partition("?")[2], max_num_fields=50)
    except ValueError:
        return False
    if any(
        len(value) >= _LEAST_NAMED_SECRET and (name.lower() in _SECRET_NAMES or _SECRET.fullmatch(value))
        for name, value in query
    ):
        return True
    return any(_SECRET.fullmatch(step) for step in (*parts.path.split("/"), *parts.fragment.split("/")))
