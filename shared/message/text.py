"""The one text of a message that agent, index and reviewer see, and its preview."""

import re
from typing import Final

from shared.fence import clean
from shared.message.bodies import BodyLists, body_lists, body_value, is_inline_media
from shared.message.flowed import unflow
from shared.message.limits import MAX_PREVIEW_CHARACTERS
from shared.message.model import Message, Part
from shared.message.reading import HiddenText, ReadableText, TextSource

# A stub says "open this in a browser" in a sentence or two; who writes more in plain text means it.
_STUB_MAX_WORDS: Final = 60

# A plain alternative stands for its HTML if it has most of its words. Half leaves room for menus and legal lines.
_STUB_MISSING_SHARE: Final = 0.5

# Enough text for a preview however many blanks and "view in browser" lines come first, and to tell a stub by.
_PREVIEW_SOURCE_CHARACTERS: Final = 4_096

_WORD: Final = re.compile(r"\w++")
_LINK: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*+>|\bhttps?://[^\s<>]++")

# Pictures by their names, and rules drawn with characters.
_SAYS_NOTHING: Final = re.compile(r"\[image: [^\[\]\n]*+\]|[-=_*~#+]{4,}+")

# First lines that say nothing about the message, as senders of newsletters write them.
_VIEW_IN_BROWSER: Final = re.compile(
    r"browser|webversion|web version|online version|onlineversion|online-version|im browser|version en ligne|"
    r"navigateur|navegador|webbrowser|w przegl[ąa]darce|в браузере|ブラウザ|浏览器|瀏覽器",
    re.IGNORECASE,
)

# A line of that kind is short; a long one that mentions a browser is text.
_VIEW_LINE_MAX_CHARACTERS: Final = 120


def readable_text(message: Message) -> ReadableText:
    """Return the text of the body: plain where a plain text was written, else made from the HTML.

    format=flowed is undone (RFC 3676). Where the plain alternative is a stub and the HTML says more, the HTML is
    taken, and `reason` says so. Hidden text of the HTML is handed over apart.
    """
    lists = body_lists(message)
    plain_parts = [part for part in lists.text_body if part.type == "text/plain"]
    html_parts = [part for part in lists.html_body if part.type == "text/html"]
    if not plain_parts and not html_parts:
        return ReadableText("", (), TextSource.NONE, "The message has no text.")
    if not plain_parts:
        return _text_of(lists.html_body, "The message has HTML only.")
    plain = _text_of(lists.text_body, "")
    if not html_parts or plain.source is TextSource.HTML:
        reason = "The message has plain text and HTML parts one after the other." if html_parts else ""
        return ReadableText(plain.text, plain.hidden, plain.source, reason or "The message has plain text only.")
    return _richer(plain, lists)


def _richer(plain: ReadableText, lists: BodyLists) -> ReadableText:
    spoken = _WORD.findall(plain.text[:_PREVIEW_SOURCE_CHARACTERS])
    if len(spoken) <= _STUB_MAX_WORDS:
        words = {word.lower() for word in spoken}
        html = _text_of(lists.html_body, "The plain text is a stub; the HTML says more.")
        html_words = {word.lower() for word in _WORD.findall(html.text)}
        if html_words and len(html_words - words) > _STUB_MISSING_SHARE * len(html_words):
            return html
    return ReadableText(
        plain.text, (), TextSource.PLAIN, "The plain text was taken; the HTML alternative was not read."
    )


def _text_of(parts: tuple[Part, ...], reason: str) -> ReadableText:
    texts: list[str] = []
    hidden: list[HiddenText] = []
    source = TextSource.PLAIN
    for part in parts:
        if part.type == "text/html":
            from shared.message.html import html_to_text  # noqa: PLC0415 - the executor's parent never loads selectolax

            made = html_to_text(body_value(part).value)
            texts.append(made.text)
            hidden += made.hidden
            source = TextSource.HTML
            reason = " ".join(filter(None, (reason, made.reason)))
        elif is_inline_media(part.type):
            texts.append(f"[{part.type.partition('/')[0]}: {part.name}]" if part.name else "")
        else:
            texts.append(plain_text(part))
    text = texts[0] if len(texts) == 1 else "\n\n".join(filter(None, (text.strip("\n") for text in texts)))
    return ReadableText(text, tuple(hidden), source, reason)


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
    text = clean(_LINK.sub(" ", reading.text[:_PREVIEW_SOURCE_CHARACTERS])).text
    lines = [line.strip() for line in _SAYS_NOTHING.sub(" ", text).split("\n")]
    telling = [line for line in lines if line] or text.split()
    while len(telling) > 1 and len(telling[0]) <= _VIEW_LINE_MAX_CHARACTERS and _VIEW_IN_BROWSER.search(telling[0]):
        telling.pop(0)
    return " ".join(" ".join(telling).split())[:MAX_PREVIEW_CHARACTERS].rstrip()
