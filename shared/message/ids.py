"""Message-ID lists and the URLs of List-* fields (RFC 5322 §3.6.4, RFC 2369 §2, RFC 8621 §4.1.2.5 and §4.1.2.7)."""

import re
from collections.abc import Iterator
from typing import Final

from shared.message.syntax import comment_end

_SPACES: Final = re.compile(r"[ \t\r\n]++")
_QUOTED_OR_SPACES: Final = re.compile(r'("[^"\\]*+")|[ \t\r\n]++')
_ANGLE_OR_QUOTED: Final = re.compile(r'(<[^<>]*+>)|"[^"\\]*+"')
_FIRST_URL: Final = re.compile(r"[ \t\r\n]*+<([^<>]*+)>")
_NEXT_URL: Final = re.compile(r"[ \t\r\n,]*+<([^<>]*+)>")
_TO_COMMENT: Final = re.compile(r"(?:[^(<]++|<[^<>]*+>?)*+")


def parse_message_ids(text: str) -> tuple[str, ...] | None:
    """Return the ids without angle brackets, white space and comments, or None if there is none.

    Where not one id has its brackets, bare ids count, if nothing but ids (or the beginning of one) stands there:
    broken References are worth more for threading than none.
    """
    if '"' in text:  # a phrase before an id may be quoted, RFC 5322 §4.5.4
        text = _ANGLE_OR_QUOTED.sub(lambda found: found[1] or " ", text)
    pieces = list(_outside_comments(text))
    bracketed = tuple(_without_white_space(inside) for inside, is_bracketed in pieces if is_bracketed and inside)
    if bracketed:
        return bracketed
    bare = [word for piece, _ in pieces for word in _SPACES.split(piece.replace(",", " ")) if word]
    whole = tuple(word for word in bare if not word.startswith("<"))
    return whole if whole and all("@" in word.strip("@") for word in whole) else None


def _without_white_space(spelled: str) -> str:
    """An id without what obsolete syntax lets stand between its tokens (RFC 5322 §4.5.4)."""
    return _QUOTED_OR_SPACES.sub(lambda found: found[1] or "", without_comments(spelled))


def parse_urls(text: str) -> tuple[str, ...] | None:
    """Return the URLs without angle brackets, or None where the field does not begin with one.

    RFC 2369 §2: what follows a URL or a comma and is no URL is left aside with all after it. Of URLs with white space
    alone between them a client SHOULD ignore all but the first; lists send such fields, and any of them serves.
    """
    text = without_comments(text)
    urls: list[str] = []
    found = _FIRST_URL.match(text)
    while found and (url := _SPACES.sub("", found[1])):
        urls.append(url)
        found = _NEXT_URL.match(text, found.end())
    return tuple(urls) or None


def _outside_comments(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each `<...>` without its brackets (True), and the text between (False)."""
    text = without_comments(text)
    position = 0
    while (opening := text.find("<", position)) >= 0:
        closing = text.find(">", opening)
        if closing < 0:
            break
        yield text[position:opening], False
        inside = text[opening + 1 : closing]
        yield inside[inside.rfind("<") + 1 :].strip(" \t\r\n"), True
        position = closing + 1
    yield text[position:], False


def without_comments(text: str) -> str:
    """Return structured text with each comment replaced by a space; inside `<...>` parentheses are characters."""
    if "(" not in text:
        return text
    kept: list[str] = []
    position = 0
    while step := _TO_COMMENT.match(text, position):
        kept.append(step[0])
        if step.end() == len(text):
            break
        end = comment_end(text, step.end())
        if end is None:
            kept.append(text[step.end() + 1 :])
            break
        kept.append(" ")
        position = end
    return "".join(kept)
