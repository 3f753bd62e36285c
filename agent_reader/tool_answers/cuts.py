"""Text of mail made short: what no reader of the text needs is cut, and a mark stands where it was.

Pure. What comes out is clean (`shared.fence.clean`), so offsets into it hold. The whole stays within reach: links in
full are a part of their own, and the octets are the mail server's.
"""

import re
from typing import Final

from shared.fence import clean, clean_line

# The query string and the fragment of a link name the reader to the sender; the place itself is before them.
_LINK: Final = re.compile(r"(\b(?:https?|ftp)://[^\s<>\"?#]{1,2000}+)[?#][^\s<>\"]*+", re.IGNORECASE)

# Trackers that carry their number in the path: no person names a place so long.
_LONG_PATH: Final = re.compile(
    r"(\b(?:https?|ftp)://[^\s<>\"/]{1,255}+/[^\s<>\"?#…]{60})[^\s<>\"?#…]{20,}+", re.IGNORECASE
)

# Base64 and the like in a text, on one line or on several full ones. Words of any language have spaces, or are shorter.
_ENCODED: Final = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_=-]{200,}+|(?:^[A-Za-z0-9+/_=-]{60,120}\n){4,}+", re.MULTILINE)

# Nothing is lost between two paragraphs.
_BLANK_LINES: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*){2,}")


def shown_text(untrusted: str) -> str:
    """Return a body's text as an agent reads it; LF line ends, clean."""
    text = clean(untrusted).text
    if "://" in text:
        text = _LONG_PATH.sub(r"\1…", _LINK.sub(r"\1?…", text))
    text = _ENCODED.sub(_said, text)
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def one_line(untrusted: str, most: int) -> str:
    """Return a value on one line of at most `most` characters, cut with a mark."""
    line = " ".join(clean_line(untrusted[: 8 * most]).text.split())
    if len(line) > most or len(untrusted) > 8 * most:
        return line[: most - 1].rstrip() + "…"
    return line


def _said(found: re.Match[str]) -> str:
    text = found[0]
    return f"[{len(text)} characters of encoded data cut]" + ("\n" if text.endswith("\n") else "")
