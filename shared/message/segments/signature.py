"""Where the signature begins in the last lines of a stretch of new text."""

import re
from collections.abc import Sequence
from typing import Final

from shared.message.segments.marks import CLOSINGS, DEVICES, MOBILE_BEGINNINGS, MOBILE_ENDINGS

# RFC 3676 §4.3 sets no length; the longest ones, with a legal notice, stay below. More below `-- ` is text that
# somebody may want to keep from the reader, and stays new.
_MAX_MARKED_LINES: Final = 40

# Without the blank of `-- ` the two dashes may stand for a change of subject; signatures are short.
_MAX_BARE_LINES: Final = 14

# Name, role, company, street, town, phones, web: what follows a closing formula or a drawn line.
_MAX_CONTACT_LINES: Final = 14

# Longer lines are sentences.
_MAX_CONTACT_CHARACTERS: Final = 110

# What a telephone writes is one short line, and perhaps a link.
_MAX_MOBILE_CHARACTERS: Final = 110

# "Verizon Wireless BlackBerry" follows the words "Sent from my" within this.
_MAX_DEVICE_CHARACTERS: Final = 28

# A drawn line above so few and so short lines stands above a name and a role.
_MAX_NAME_LINES: Final = 3
_MAX_NAME_LINE_CHARACTERS: Final = 40

_MAX_NAME_CHARACTERS: Final = 60
_MAX_NAME_WORDS: Final = 6

_SENTENCE_ENDS: Final = (".", "!", "?", ":", ",", ";", "。", "！", "？", "：", "，", "…")
_TRIM: Final = " \t\r\xa0\u3000*_"
_CLOSING_TRIM: Final = " \t\r\xa0\u3000*_,.!;，。！、"
_PHONE: Final = re.compile(r"\+?\(?[0-9][0-9 ()/.-]{6,20}[0-9]")
_CONTACT: Final = re.compile(
    r"https?://|\bwww\.|[^\s@]@[^\s@]|\b(?:tel|fax|mob|mobile|phone|telefon|telefoon|t[ée]l[ée]phone|kvk|btw|siret|"
    r"ust-?id|handelsregister)\b|電話|电话|тел\b",
    re.IGNORECASE,
)
_LIST: Final = re.compile(r"mailing list|list ?info|mailman|unsubscribe|googlegroups|google groups", re.IGNORECASE)
_MARKS: Final = frozenset({"--", "—", "– –", "---"})


def signature_start(lines: Sequence[str], start: int, end: int) -> int:
    """Return the line at which the signature of the new text lines[start:end] begins; `end` where there is none.

    Looks at the last 40 lines with text, whatever the length of the stretch.
    """
    last_lines = _last_lines_with_text(lines, start, end)
    if not last_lines:
        return end
    begins = end
    for after, at in enumerate(reversed(last_lines)):
        if _is_mark(lines[at], last_lines[len(last_lines) - after :], lines):
            begins = at
    if begins < end:
        # Above the mark a telephone's line or the contact lines of a closing may stand; then those are the start.
        last_lines = [at for at in last_lines if at < begins]
    begins = min(begins, _mobile_start(lines, last_lines, begins))
    return min(begins, _contact_start(lines, [at for at in last_lines if at < begins], begins))


def _last_lines_with_text(lines: Sequence[str], start: int, end: int) -> list[int]:
    found: list[int] = []
    at = end
    while at > start and len(found) <= _MAX_MARKED_LINES:
        at -= 1
        if lines[at].strip():
            found.append(at)
    found.reverse()
    return found


def _is_mark(line: str, following: Sequence[int], lines: Sequence[str]) -> bool:
    bare = line[: _MAX_CONTACT_CHARACTERS + 1].rstrip("\r")
    if bare == "-- ":
        return True
    bare = bare.strip()
    if not bare or len(bare) > _MAX_CONTACT_CHARACTERS:
        return False
    if bare in _MARKS:
        is_short = len(following) <= _MAX_BARE_LINES and not _has_sentences(following, lines)
        return is_short and (bare != "---" or _has_contact(following, lines))
    if not bare.strip("_—–-"):
        if _are_names(following, lines):
            return True
        is_footer = any(_LIST.search(lines[at][:_MAX_CONTACT_CHARACTERS]) for at in following[:3])
        return len(following) <= _MAX_CONTACT_LINES and (is_footer or _is_contact_block(following, lines))
    return False


def _are_names(following: Sequence[int], lines: Sequence[str]) -> bool:
    if not 0 < len(following) <= _MAX_NAME_LINES:
        return False
    texts = [lines[at].strip() for at in following if len(lines[at]) <= _MAX_CONTACT_CHARACTERS]
    return len(texts) == len(following) and all(
        len(text) <= _MAX_NAME_LINE_CHARACTERS and not text.endswith(_SENTENCE_ENDS) for text in texts
    )


def _has_sentences(following: Sequence[int], lines: Sequence[str]) -> bool:
    return sum(len(lines[at]) > _MAX_CONTACT_CHARACTERS for at in following) > 1


def _has_contact(following: Sequence[int], lines: Sequence[str]) -> bool:
    return any(_is_contact(lines[at]) for at in following)


def _is_contact(line: str) -> bool:
    if len(line) > _MAX_CONTACT_CHARACTERS:
        return False
    return _CONTACT.search(line) is not None or _PHONE.search(line) is not None


def _is_contact_block(following: Sequence[int], lines: Sequence[str]) -> bool:
    if not following or len(following) > _MAX_CONTACT_LINES:
        return False
    if any(len(lines[at]) > _MAX_CONTACT_CHARACTERS for at in following):
        return False
    return _has_contact(following, lines) and not any(_is_afterthought(lines[at]) for at in following)


def _is_afterthought(line: str) -> bool:
    bare = line.strip()
    return bare[:2].casefold() == "ps" or bare[:4].casefold() == "p.s." or bare.endswith(("?", "？", ":"))


def _mobile_start(lines: Sequence[str], last_lines: Sequence[int], end: int) -> int:
    for back, at in enumerate(reversed(last_lines)):
        if _is_mobile(lines[at]):
            end = at
        elif back >= 1 or not _is_contact(lines[at]):
            break
    return end


def _is_mobile(line: str) -> bool:
    """What a telephone or a program writes names it at once; "sent from my desk, not by phone" is a sentence."""
    bare = line[: _MAX_MOBILE_CHARACTERS + 1].strip(_TRIM + "<>[]()-—").casefold()
    if not bare or len(line.strip()) > _MAX_MOBILE_CHARACTERS:
        return False
    for beginning in MOBILE_BEGINNINGS:
        if bare.startswith(beginning):
            return _names_device(bare[: len(beginning) + _MAX_DEVICE_CHARACTERS])
    return bare.rstrip(".。").endswith(MOBILE_ENDINGS) and _names_device(bare)


def _names_device(bare: str) -> bool:
    return any(device in bare for device in DEVICES)


def _contact_start(lines: Sequence[str], last_lines: Sequence[int], end: int) -> int:
    """The lines below a closing formula and a name, if they say where to reach the person; the name stays."""
    for place, at in enumerate(last_lines):
        if _is_closing(lines[at]):
            following = last_lines[place + 1 :]
            if len(following) > 1 and _is_name(lines[following[0]]) and _is_contact_block(following[1:], lines):
                return following[1]
    return end


def _is_closing(line: str) -> bool:
    if len(line) > _MAX_CONTACT_CHARACTERS:
        return False
    return line.strip(_CLOSING_TRIM).casefold() in _CLOSINGS


_CLOSINGS: Final = frozenset(CLOSINGS)


def _is_name(line: str) -> bool:
    bare = line.strip(_TRIM)
    return 0 < len(bare) <= _MAX_NAME_CHARACTERS and len(bare.split()) <= _MAX_NAME_WORDS and not _is_contact(line)
