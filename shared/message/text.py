"""The one text of a message that agent, index and reviewer see, and its preview."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from shared.fence import clean
from shared.message.bodies import BodyLists, body_lists, body_value, is_inline_media
from shared.message.flowed import unflow
from shared.message.limits import MAX_LINKS, MAX_PREVIEW_CHARACTERS, MAX_TITLES
from shared.message.model import Message, Part
from shared.message.reading import BodyChoice, HiddenText, Link, ReadableText, TextSource

# A stub says "open this in a browser" in a sentence or two; who writes more in plain text means it, unless the HTML
# says many times as much.
_STUB_MAX_WORDS: Final = 60
_MUCH_MORE: Final = 3

# Holds more words than a stub has, in nearly every language.
_PREFIX_CHARACTERS: Final = 600

# A plain alternative stands for its HTML if it has most of its words. Half leaves room for menus and legal lines.
_STUB_MISSING_SHARE: Final = 0.5

# Enough text for a preview however many blanks and "view in browser" lines come first, and to tell a stub by.
_PREVIEW_SOURCE_CHARACTERS: Final = 4_096

_WORD: Final = re.compile(r"\w++")
_TAG: Final = re.compile(r"<[^<>]*+>?")
_LINK: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+>|\bhttps?://[^\s<>]++")

# Pictures by their names, and rules drawn with characters.
_SAYS_NOTHING: Final = re.compile(r"\[image: [^\[\]\n]*+\]|[-=_*~#+]{4,}+")

# First lines that say nothing about the message, as senders of newsletters write them.
_VIEW_IN_BROWSER: Final = (
    *("browser", "webversion", "web version", "online version", "onlineversion", "online-version"),
    *("version en ligne", "navigateur", "navegador", "w przeglądarce", "w przegladarce", "в браузере"),
    *("ブラウザ", "浏览器", "瀏覽器"),
)

# A line of that kind is short; a long one that mentions a browser is text.
_VIEW_LINE_MAX_CHARACTERS: Final = 120


def readable_text(message: Message) -> ReadableText:
    """Return the text of the body: plain where a plain text was written, else made from the HTML.

    format=flowed is undone (RFC 3676). Where the plain alternative is a stub (empty, links only, "view in browser", or
    much shorter) and the HTML says more, the HTML is taken; `choice` and `reason` say so. Hidden text of the HTML is
    handed over apart.
    """
    lists = body_lists(message)
    has_plain = any(part.type == "text/plain" for part in lists.text_body)
    has_html = any(part.type == "text/html" for part in lists.html_body)
    if not has_plain and not has_html:
        return ReadableText("", (), TextSource.NONE, _REASONS[BodyChoice.NO_TEXT], BodyChoice.NO_TEXT)
    if not has_plain:
        return _text_of(lists.html_body, BodyChoice.HTML_ONLY)
    if not has_html:
        return _text_of(lists.text_body, BodyChoice.PLAIN_ONLY)
    if any(part.type == "text/html" for part in lists.text_body):
        return _text_of(lists.text_body, BodyChoice.ALL_IN_ORDER)
    return _richer(_text_of(lists.text_body, BodyChoice.PLAIN_SAYS_IT), lists)


_REASONS: Final = {
    BodyChoice.NO_TEXT: "The message has no text.",
    BodyChoice.PLAIN_ONLY: "The message has plain text only.",
    BodyChoice.HTML_ONLY: "The message has HTML only.",
    BodyChoice.ALL_IN_ORDER: "The message has plain text and HTML parts one after the other.",
    BodyChoice.PLAIN_SAYS_IT: "The plain text was taken; the HTML alternative was left out.",
    BodyChoice.PLAIN_IS_EMPTY: "The plain text is an empty stub; the HTML was taken.",
    BodyChoice.PLAIN_IS_LINKS: "The plain text is a stub of links only; the HTML was taken.",
    BodyChoice.PLAIN_OFFERS_BROWSER: "The plain text is a stub that offers a browser; the HTML was taken.",
    BodyChoice.PLAIN_IS_SHORT: "The plain text is a stub; the HTML says more and was taken.",
}


def _richer(plain: ReadableText, lists: BodyLists) -> ReadableText:
    html_size = _characters_outside_tags(part for part in lists.html_body if part.type == "text/html")
    # Half as much plain text settles it for most mail; only else all of it is looked at.
    for text in (plain.text[: max(_PREFIX_CHARACTERS, html_size // 2)], plain.text):
        words = _words(text)
        if len(words) > _STUB_MAX_WORDS and html_size <= _MUCH_MORE * sum(map(len, words)):
            return plain
    choice = _stub_kind(plain.text, words)
    html = _text_of(lists.html_body, choice)
    html_words = _words(html.text)
    if len(words) > _STUB_MAX_WORDS and len(html_words) <= _MUCH_MORE * len(words):
        return plain
    known = set(words)
    distinct = set(html_words)
    return html if len(distinct - known) > _STUB_MISSING_SHARE * len(distinct) else plain


def _words(text: str) -> list[str]:
    """The words that a person reads, in lower case: links and what cannot be seen say nothing."""
    return _WORD.findall(_without_links(clean(text).text.lower()))


def _without_links(text: str) -> str:
    return _LINK.sub(" ", text) if "<" in text or "://" in text else text


def _stub_kind(text: str, words: list[str]) -> BodyChoice:
    if not words:
        return BodyChoice.PLAIN_IS_LINKS if _LINK.search(text) else BodyChoice.PLAIN_IS_EMPTY
    if len(words) <= _STUB_MAX_WORDS and _offers_browser(text):
        return BodyChoice.PLAIN_OFFERS_BROWSER
    return BodyChoice.PLAIN_IS_SHORT


def _characters_outside_tags(html_parts: Iterable[Part]) -> int:
    """No fewer than those of the words that the HTML shows."""
    html = "".join(body_value(part).value for part in html_parts)
    return len(html) - sum(map(len, _TAG.findall(html)))


def _text_of(parts: tuple[Part, ...], choice: BodyChoice) -> ReadableText:
    texts: list[str] = []
    hidden: list[HiddenText] = []
    links: list[Link] = []
    titles: list[str] = []
    reason = _REASONS[choice]
    source = TextSource.PLAIN
    for part in parts:
        if part.type == "text/html":
            from shared.message.html import html_to_text  # noqa: PLC0415 - the executor's parent never loads selectolax

            made = html_to_text(body_value(part).value)
            texts.append(made.text)
            hidden += made.hidden
            links += made.links
            titles += made.titles
            source = TextSource.HTML
            reason = " ".join(filter(None, (reason, made.reason)))
        elif is_inline_media(part.type):
            texts.append(f"[{part.type.partition('/')[0]}: {part.name}]" if part.name else "")
        else:
            texts.append(plain_text(part))
    text = texts[0] if len(texts) == 1 else "\n\n".join(filter(None, (text.strip("\n") for text in texts)))
    return ReadableText(
        text, tuple(hidden), source, reason, choice, tuple(links[:MAX_LINKS]), tuple(titles[:MAX_TITLES])
    )


def plain_text(part: Part) -> str:
    """Return the text of a text/plain part, format=flowed undone (RFC 3676 §4)."""
    value = body_value(part).value
    if part.parameters.get("format", "").lower() != "flowed":
        return value
    return unflow(value, delete_space=part.parameters.get("delsp", "").lower() == "yes")


def preview(message: Message) -> str:
    """Return at most 256 characters of what the message says, white space collapsed; "" for none.

    Without links, invisible characters, and the first lines that only offer a browser. RFC 8621 §4.1.4.
    """
    return preview_of(readable_text(message))


def preview_of(reading: ReadableText) -> str:
    """Return the preview of a text that was read already."""
    source = reading.text[:_PREVIEW_SOURCE_CHARACTERS]
    shown: list[str] = []
    left = MAX_PREVIEW_CHARACTERS
    browser_offer = ""
    for cleaned in _cleaned_lines(source):
        line = _SAYS_NOTHING.sub(" ", cleaned).strip()
        if not shown and len(line) <= _VIEW_LINE_MAX_CHARACTERS and _offers_browser(line):
            browser_offer = line  # shown if nothing else is there
        elif line:
            shown.append(" ".join(line.split()))
            left -= len(shown[-1]) + 1
            if left < 0:
                break
    telling = " ".join(shown) or browser_offer or " ".join(_cleaned_lines(source))
    return " ".join(telling.split())[:MAX_PREVIEW_CHARACTERS].rstrip()


def _offers_browser(text: str) -> bool:
    lowered = text.lower()
    return any(words in lowered for words in _VIEW_IN_BROWSER)


def _cleaned_lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from clean(_without_links(line)).text.split("\n")
