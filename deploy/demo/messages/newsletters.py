"""Newsletters: HTML with a text beside it, List-Id (RFC 2919) and one-click List-Unsubscribe (RFC 8058)."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from deploy.demo.messages.files import png
from deploy.demo.messages.letter import SHOP, Attachment, Letter


@dataclass(frozen=True, slots=True)
class _Issue:
    """One issue of a list: its subject, its days back, and (headline, words) pairs."""

    slug: str
    subject: str
    days: float
    items: tuple[tuple[str, str], ...]
    seen: bool = True


@dataclass(frozen=True, slots=True)
class _List:
    """A mailing list: its name, host, ink colour and issues, newest last."""

    name: str
    host: str
    colour: str
    issues: tuple[_Issue, ...]
    html_only: bool = False
    banner: tuple[int, int, int] | None = None


_LISTS: Final = (
    _List(
        "The Leaf Letter",
        "leaf-letter.example",
        "#3b6b4a",
        (
            _Issue(
                "leaf-1",
                "First frost on the terraces",
                17.2,
                (
                    ("Frost", "Two nights of frost in the hills; the pickers made soup and waited for the sun."),
                    ("Prices", "Autumn flush is four per cent dearer than last year, and worth it."),
                ),
            ),
            _Issue(
                "leaf-2",
                "What makes a tea white?",
                10.2,
                (
                    ("The short answer", "Almost nothing is done to it."),
                    ("The long answer", "Withering for two days is a great deal of almost nothing."),
                ),
            ),
            _Issue(
                "leaf-3",
                "A kettle is not a thermometer",
                3.2,
                (
                    ("Bubbles", "Shrimp eyes, crab eyes, fish eyes: old names for 70, 80 and 85 degrees."),
                    ("Readers ask", "Yes, you may reheat it. No, we shall not tell anyone."),
                ),
                seen=False,
            ),
        ),
        banner=(59, 107, 74),
    ),
    _List(
        "Small Shop Weekly",
        "smallshop-weekly.example",
        "#8a4b2d",
        (
            _Issue(
                "shop-1",
                "Returns without tears",
                18.4,
                (
                    ("Say yes first", "Three shopkeepers on why they stopped asking for the reason."),
                    ("A box in a box", "The packaging that came back four times."),
                ),
            ),
            _Issue(
                "shop-2",
                "The quiet week before the storm",
                11.4,
                (
                    ("Stocktaking", "Do it now, with cake."),
                    ("Opening hours", "Who really comes after six?"),
                ),
            ),
            _Issue(
                "shop-3",
                "Eleven answers to angry customers",
                4.4,
                (
                    ("Ring them", "A voice does what no paragraph can."),
                    ("Then write", "What was promised, by whom, until when."),
                ),
                seen=False,
            ),
        ),
    ),
    _List(
        "Kiln & Clay",
        "kiln-and-clay.example",
        "#5a4a78",
        (
            _Issue(
                "kiln-1",
                "Ash glazes, blue and otherwise",
                15.6,
                (
                    ("Wood", "Apple ash runs, oak ash sulks."),
                    ("Open studio", "On the first Sunday of December."),
                ),
            ),
            _Issue(
                "kiln-2",
                "Seconds sale begins on Friday",
                2.6,
                (("Wobbly cups", "Perfectly good, charmingly crooked, half the price."),),
                seen=False,
            ),
        ),
        html_only=True,
    ),
    _List(
        "Parcelway Business",
        "news.parcelway.example",
        "#22577a",
        (
            _Issue(
                "parcelway-1",
                "Holiday cut-off dates",
                8.3,
                (
                    ("At home", "Hand in by 21 December, noon."),
                    ("Abroad", "Hand in by 11 December; islands by the 8th."),
                ),
            ),
            _Issue(
                "parcelway-2",
                "New labels from January",
                1.3,
                (("What changes", "A second barcode, for machines with glasses."),),
                seen=False,
            ),
        ),
    ),
    _List(
        "Till Talk",
        "tilltalk.example",
        "#444444",
        (
            _Issue(
                "till-1",
                "Version 8.2: receipts by mail",
                13.3,
                (
                    ("New", "The till can now mail a receipt instead of printing it."),
                    ("Mended", "The drawer no longer opens at midnight."),
                ),
            ),
            _Issue(
                "till-2",
                "Version 8.3: the drawer again",
                0.8,
                (("Mended", "It really does not open at midnight any more."),),
                seen=False,
            ),
        ),
        html_only=True,
    ),
)


def letters() -> list[Letter]:
    """Every issue of every list, in Newsletters."""
    return [_letter(source, issue) for source in _LISTS for issue in source.issues]


def _letter(source: _List, issue: _Issue) -> Letter:
    address = f"https://{source.host}/leave/{issue.slug}"
    banner = source.banner
    picture = Attachment("banner.png", "image/png", png(*banner), f"banner.{issue.slug}") if banner else None
    return Letter(
        slug=f"newsletter-{issue.slug}",
        mailbox="Newsletters",
        sender=f"{source.name} <letters@{source.host}>",
        to=SHOP,
        subject=issue.subject,
        days=issue.days,
        text=None if source.html_only else _as_text(source, issue, address),
        html=_as_html(source, issue, address, picture),
        flags=frozenset({"\\Seen"}) if issue.seen else frozenset(),
        attachments=(picture,) if picture else (),
        headers=(
            ("List-Id", f"{source.name} <letters.{source.host}>"),
            ("List-Unsubscribe", f"<{address}>, <mailto:leave@{source.host}?subject={issue.slug}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
            ("Precedence", "bulk"),
        ),
    )


def _as_text(source: _List, issue: _Issue, address: str) -> str:
    body = "\n\n".join(f"{headline.upper()}\n{words}" for headline, words in issue.items)
    return f"{source.name}: {issue.subject}\n\n{body}\n\n-- \nNo longer wanted? {address}\n"


def _as_html(source: _List, issue: _Issue, address: str, picture: Attachment | None) -> str:
    shown = f'<img src="cid:{picture.content_id}" alt="" width="560" height="40">' if picture else ""
    items = "\n".join(
        f'<tr><td style="padding:12px 24px"><h2 style="font-size:18px;color:{source.colour};margin:0">'
        f'{escape(headline)}</h2>\n<p style="margin:6px 0 0">{escape(words)}</p></td></tr>'
        for headline, words in issue.items
    )
    return f"""<!doctype html>
<html><head><meta charset="utf-8"><title>{escape(issue.subject)}</title></head>
<body style="margin:0;background:#f4f1ea;font-family:Georgia,serif;color:#222">
<div style="display:none;max-height:0">{escape(issue.items[0][1])}</div>
<table role="presentation" width="560" align="center" style="background:#fff">
<tr><td style="padding:24px">{shown}
<h1 style="font-size:24px;color:{source.colour}">{escape(issue.subject)}</h1></td></tr>
{items}
<tr><td style="padding:24px;font-size:12px;color:#777">You read {escape(source.name)} because you asked for it.
<a href="{address}">Leave the list</a></td></tr>
</table></body></html>
"""
