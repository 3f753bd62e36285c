"""Letters in plain text, read from the TOML files beside this module: conversations, and single mails."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from deploy.demo.messages.files import csv, png
from deploy.demo.messages.letter import SHOP, Attachment, Letter, quoted

_STAFF: Final = {"Nora": "Nora at Halcyon Tea <support@halcyon-tea.example>", "Tom": f"Tom at {SHOP}"}

_WHOLESALE: Final = (
    ("tea", "kilo", "price"),
    ("Breakfast blend", "3", "19.60"),
    ("White peony", "1", "58.00"),
    ("Roasted twig", "3", "22.40"),
    ("Smoked oolong", "1", "44.80"),
)
_ATTACHMENTS: Final = {
    "photo-crack.png": Attachment("photo-crack.png", "image/png", png(196, 164, 132)),
    "wholesale-list.csv": Attachment("wholesale-list.csv", "text/csv", csv(_WHOLESALE)),
}


@dataclass(frozen=True, slots=True)
class _Mail:
    """One table of the files; the names are those of the file."""

    by: str
    days: float
    text: str
    slug: str | None = None
    subject: str | None = None
    mailbox: str | None = None
    to: str | None = None
    flags: tuple[str, ...] = ()
    attach: str | None = None
    flowed: bool = False

    @classmethod
    def of(cls, table: dict[str, Any]) -> _Mail:
        return cls(**{**table, "flags": tuple(table.get("flags", ()))})


def letters(now: datetime) -> list[Letter]:
    """All plain letters, each conversation in order. ValueError or TypeError for a table that does not fit."""
    conversations = _read("conversations.toml")["thread"]
    found = [letter for thread in conversations for letter in _conversation(thread, now)]
    for name in ("singles.toml", "others.toml"):
        found += [_single(_Mail.of(table)) for table in _read(name)["mail"]]
    return found


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text("utf-8"))


def _conversation(thread: dict[str, Any], now: datetime) -> Iterator[Letter]:
    mails = [_Mail.of(table) for table in thread["mail"]]
    customer = next(mail.by for mail in mails if mail.by not in _STAFF)
    before: list[Letter] = []
    for number, mail in enumerate(mails, 1):
        ours = mail.by in _STAFF
        text = mail.text.lstrip("\n")
        # The shop's program quotes what it answers; most customers write from a phone and do not.
        if before and ours:
            text = text.rstrip() + quoted(before[-1], now)
        letter = Letter(
            slug=mail.slug or f"{thread['slug']}-{number}",
            mailbox="Sent" if ours else "Incoming",
            sender=_STAFF.get(mail.by, mail.by),
            to=customer if ours else SHOP,
            subject=("Re: " if before else "") + thread["subject"],
            days=mail.days,
            text=text,
            flags=frozenset(mail.flags) | ({"\\Seen"} if ours else set()),
            attachments=(_ATTACHMENTS[mail.attach],) if mail.attach else (),
            answers=tuple(earlier.message_id for earlier in before),
            flowed=mail.flowed,
        )
        before.append(letter)
        yield letter


def _single(mail: _Mail) -> Letter:
    if mail.slug is None or mail.subject is None:
        raise ValueError(f"a single mail needs a slug and a subject: {mail.by}")
    return Letter(
        slug=mail.slug,
        mailbox=mail.mailbox or "Incoming",
        sender=mail.by,
        to=mail.to or SHOP,
        subject=mail.subject,
        days=mail.days,
        text=mail.text.lstrip("\n"),
        flags=frozenset(mail.flags),
        flowed=mail.flowed,
    )
