"""The base subject, by which messages are threaded and sorted (RFC 5256 §2.1, RFC 8621 §3)."""

import re
from typing import Final

_BLANKS: Final = re.compile(r"\s++")
_TRAILER: Final = "(fwd)"

# RFC 5256 §5: subj-refwd, a blob in brackets among it. Localised prefixes are words of the subject, by that RFC.
_LEADER: Final = re.compile(r"(?:re|fwd?)\s?(?:\[[^\[\]]*+\]\s?)?:\s?", re.IGNORECASE)
_BLOB: Final = re.compile(r"\[[^\[\]]*+\]\s?")
_FORWARDED: Final = re.compile(r"\[fwd:", re.IGNORECASE)


def base_subject(subject: str, leader: re.Pattern[str] = _LEADER) -> str:
    """Return the base subject of a decoded subject: white space folded, Re:, Fwd: and [list] before it taken away.

    One pass over the text, whatever it holds. Letter case stays; who compares folds it. `leader` matches what is taken
    for a reply's or a forward's prefix, where it is to be more than RFC 5256 §2.1 names.
    """
    text = _BLANKS.sub(" ", subject)
    start, end = 0, len(text)
    while True:
        end = _without_trailer(text, start, end)
        start = _without_leaders(text, start, end, leader)
        if _FORWARDED.match(text, start, end) and text[end - 1] == "]":
            start, end = start + len("[fwd:"), end - 1
            continue
        return text[start:end].strip()


def _without_trailer(text: str, start: int, end: int) -> int:
    while end > start:
        if text[end - 1] == " ":
            end -= 1
        elif end - start >= len(_TRAILER) and text[end - len(_TRAILER) : end].lower() == _TRAILER:
            end -= len(_TRAILER)
        else:
            break
    return end


def _without_leaders(text: str, start: int, end: int, leader: re.Pattern[str]) -> int:
    while start < end:
        if text[start] == " ":
            start += 1
        elif prefix := leader.match(text, start, end):
            start = prefix.end()
        elif (blob := _BLOB.match(text, start, end)) and blob.end() < end:
            start = blob.end()  # RFC 5256 §2.1(4): a blob goes only if something is left without it
        else:
            break
    return start
