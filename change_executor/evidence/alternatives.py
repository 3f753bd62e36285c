"""Whether the plain and the HTML alternative of a message say different things: a person is shown one of them.

Runs in the confined child alone.
"""

import re
from typing import Final

from shared.message import BodyLists, body_value
from shared.message.html import html_to_text

# Of the alternative with fewer words, so many are in the other too if both say the same: menus and legal lines, or a
# text cut short, leave the shorter one whole inside the longer.
_SHARED_SHARE: Final = 0.5

# Below this a stub ("view in browser") says nothing that could be different.
_MIN_WORDS: Final = 4

_WORD: Final = re.compile(r"\w++")
_LINK: Final = re.compile(r"<[^<>\s]*+>|\bhttps?://\S++")
# Amounts, accounts, dates: what a deceiver changes while the words stay.
_NUMBER: Final = re.compile(r"\d(?:[.,]?\d)++")


def alternatives_differ(lists: BodyLists) -> bool:
    """Whether both alternatives have text, and few words of the shorter, or no number at all, are in the other."""
    plain_parts = [part for part in lists.text_body if part.type == "text/plain"]
    html_parts = [part for part in lists.html_body if part.type == "text/html"]
    # Where a part stands in both lists the two come one after the other, and both are shown.
    if not plain_parts or not html_parts or any(part in lists.html_body for part in plain_parts):
        return False
    plain = _LINK.sub(" ", "\n".join(body_value(part).value for part in plain_parts).lower())
    html = _LINK.sub(" ", "\n".join(html_to_text(body_value(part).value).text for part in html_parts).lower())
    words, others = set(_WORD.findall(plain)), set(_WORD.findall(html))
    fewer = min(len(words), len(others))
    if fewer < _MIN_WORDS:
        return False
    if len(words & others) < _SHARED_SHARE * fewer:
        return True
    numbers, other_numbers = set(_NUMBER.findall(plain)), set(_NUMBER.findall(html))
    return bool(numbers) and bool(other_numbers) and not numbers & other_numbers
