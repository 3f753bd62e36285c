"""The HTML of a message, cleaned for a sandboxed frame: no image, no style, nothing that can be followed.

Runs in the confined child alone. Three things would each suffice, and all three hold: what is cleaned here, the frame
without a single permission, and the policy of the frame's own answer.
"""

import re
from html import escape, unescape
from typing import Final

import nh3

from shared.fence import clean, clean_line
from shared.message import body_lists, body_value, host_of, parse
from shared.message.markup import MAX_HTML_CHARACTERS, rewrite

# Structure and emphasis only. `mark` is missing: it is ours, for the host that a link leads to.
_TAG_WORDS: Final = (
    "a b blockquote br caption center code dd div dl dt em h1 h2 h3 h4 h5 h6 hr i li ol p pre s small span strike"
    " strong table tbody td tfoot th thead tr tt u ul"
)
_TAGS: Final = frozenset(_TAG_WORDS.split())
# `href` is read here and never leaves.
_ATTRIBUTES: Final = {
    "a": {"href"},
    "ol": {"start"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
# What a table of a letter has; more would only make the browser work.
_SPAN: Final = re.compile(r"[1-9][0-9]?", re.ASCII)
_WITH_CONTENT: Final = frozenset({"script", "style", "title", "template", "noscript", "textarea", "select"})
_SCHEMES: Final = frozenset({"http", "https", "ftp", "mailto", "tel"})
_LINK: Final = re.compile(r'<a(?: href="([^"]*+)")?>(.*?)</a>', re.DOTALL)
_MAX_HOST_CHARACTERS: Final = 253


def cleaned_html(octets: bytes) -> str | None:
    """Return the HTML bodies of a message as inert HTML, or None where it has none that can be laid out.

    A link is its text, followed by the host that it leads to in a `mark`; nothing can be clicked. Any octets give a
    value.
    """
    parts = [part for part in body_lists(parse(octets)).html_body if part.type == "text/html"]
    if not parts:
        return None
    # The writer in front of it: nh3 takes most of a minute for what this refuses in a second.
    markups = [rewrite(body_value(part).value[:MAX_HTML_CHARACTERS]) for part in parts]
    if any(markup.is_too_complex for markup in markups):
        return None
    return "<hr>".join(_cleaned(markup.html) for markup in markups)


def _cleaned(html: str) -> str:
    kept = nh3.clean(
        html,
        tags=set(_TAGS),
        # Without a word on those of every tag, nh3 keeps `title` and `lang`.
        attributes={"*": set()} | {tag: set(names) for tag, names in _ATTRIBUTES.items()},
        clean_content_tags=set(_WITH_CONTENT),
        url_schemes=set(_SCHEMES),
        link_rel=None,
        attribute_filter=_kept_value,
    )
    # What nh3 wrote is well formed, links do not nest in it, and references that spelled characters are resolved.
    return _LINK.sub(_without_target, clean(kept).text)


def _kept_value(_: str, attribute: str, value: str) -> str | None:
    return value if not attribute.endswith("span") or _SPAN.fullmatch(value) else None


def _without_target(link: re.Match[str]) -> str:
    host = clean_line(host_of(unescape(link[1] or ""))).text[:_MAX_HOST_CHARACTERS]
    return f"<u>{link[2]}</u>" + (f" <mark>[{escape(host)}]</mark>" if host else "")
