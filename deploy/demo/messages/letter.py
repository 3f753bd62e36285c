"""One letter of the sample, and how it becomes the octets of a message (RFC 5322, RFC 2045)."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, parseaddr
from typing import Final, Literal

SHOP: Final = "Halcyon Tea <support@halcyon-tea.example>"
SHOP_DOMAIN: Final = "halcyon-tea.example"

Encoding = Literal["7bit", "8bit", "base64", "quoted-printable"]

# Stands in for a subject that must be written in the letter's own charset; the library writes UTF-8 only.
_SUBJECT_STAND_IN: Final = "subject-in-its-own-charset"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that hangs on a letter; `content_id` puts it inside the HTML instead (RFC 2392)."""

    filename: str
    media_type: str
    octets: bytes
    content_id: str | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    """What a message says and when; `days` counts back from the sample's present.

    `slug` names it for ever and gives it its Message-ID. `answers` are the slugs and senders of the thread before it,
    oldest first. `build` replaces the usual body for shapes of their own (reports, forwarded messages).
    """

    slug: str
    mailbox: str
    sender: str
    subject: str
    days: float
    text: str | None = None
    html: str | None = None
    to: str = SHOP
    flags: frozenset[str] = frozenset()
    headers: tuple[tuple[str, str], ...] = ()
    attachments: tuple[Attachment, ...] = ()
    answers: tuple[str, ...] = ()
    charset: str = "utf-8"
    encoding: Encoding = "quoted-printable"
    flowed: bool = False
    calendar: str | None = None
    utc_offset: int = 1
    build: Callable[[datetime], EmailMessage] | None = None

    @property
    def message_id(self) -> str:
        """The Message-ID, angle brackets included."""
        local = hashlib.sha256(self.slug.encode()).hexdigest()[:16]
        return f"<{local}@{parseaddr(self.sender)[1].partition('@')[2]}>"

    def written(self, now: datetime) -> datetime:
        """When it was sent, to the second, in the sender's own offset from UTC."""
        odd_seconds = zlib.crc32(self.slug.encode()) % 3600
        moment = now - timedelta(days=self.days, seconds=odd_seconds)
        return moment.astimezone(timezone(timedelta(hours=self.utc_offset))).replace(microsecond=0)

    def octets(self, now: datetime) -> bytes:
        """The message as it travels: CRLF line ends, no random part."""
        message = self.build(now) if self.build else self._body()
        self._write_header(message, now)
        _name_boundaries(message, self.slug)
        written = message.as_bytes(policy=SMTP)
        if self._subject_in_charset:
            subject = Header(self.subject, self.charset, header_name="Subject").encode(linesep="\r\n")
            written = written.replace(_SUBJECT_STAND_IN.encode(), subject.encode(), 1)
        return written

    @property
    def _subject_in_charset(self) -> bool:
        return self.charset != "utf-8" and not self.subject.isascii()

    def _body(self) -> EmailMessage:
        message = EmailMessage(policy=SMTP)
        if self.text is not None:
            message.set_content(self._as_sent(self.text), charset=self.charset, cte=self._encoding_of(self.text))
            if self.flowed:
                message.set_param("format", "flowed")
        if self.html is not None:
            charset, encoding = self.charset, self.encoding
            if self.text is None:
                message.set_content(self.html, subtype="html", charset=charset, cte=encoding)
            else:
                message.add_alternative(self.html, subtype="html", charset=charset, cte=encoding)
        if self.calendar is not None:
            message.add_alternative(
                self.calendar, subtype="calendar", charset="utf-8", params={"method": "REQUEST"}, cte="8bit"
            )
        for attachment in self.attachments:
            _attach(message, attachment)
        return message

    def _as_sent(self, text: str) -> str:
        return flow(text) if self.flowed else text

    def _encoding_of(self, text: str) -> Encoding:
        # What a person's mail program does: plain ASCII goes out as it is.
        short = all(len(line) < 200 for line in text.splitlines())  # noqa: PLR2004 (well under RFC 5322's 998)
        return "7bit" if text.isascii() and short and self.charset == "utf-8" else self.encoding

    def _write_header(self, message: EmailMessage, now: datetime) -> None:
        body_fields = [(name, value) for name, value in message.items()]
        for name, _ in body_fields:
            del message[name]
        fields: list[tuple[str, str | Address | None]] = [
            ("From", _address(self.sender)),
            ("To", _address(self.to)),
            ("Subject", _SUBJECT_STAND_IN if self._subject_in_charset else self.subject),
            ("Date", format_datetime(self.written(now))),
            ("Message-ID", self.message_id),
            ("In-Reply-To", self.answers[-1] if self.answers else None),
            ("References", " ".join(self.answers) or None),
            *self.headers,
        ]
        for name, value in fields:
            if value is not None:
                message[name] = value
        for name, value in body_fields:
            message[name] = value


def flow(text: str, width: int = 66) -> str:
    """Break long lines with a trailing space (RFC 3676 §4.2); lines that begin with `>` stay whole."""
    lines: list[str] = []
    for paragraph in text.splitlines():
        line = ""
        for word in paragraph.split(" "):
            if line and len(line) + len(word) + 1 > width and not paragraph.startswith(">"):
                lines.append(line + " ")
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return "\n".join(lines) + "\n"


def quoted(letter: Letter, now: datetime) -> str:
    """The letter's text as a reply quotes it, with the line that says who wrote."""
    name = parseaddr(letter.sender)[0]
    own_words = (letter.text or "").partition("\n\nOn ")[0].rstrip()
    lines = "\n".join(f"> {line}".rstrip() for line in own_words.splitlines())
    return f"\n\nOn {letter.written(now):%a, %d %b %Y at %H:%M}, {name} wrote:\n{lines}\n"


def _address(written: str) -> Address:
    # Quotes a name where its characters need it (RFC 5322 §3.2.5), as in "G. Hartwell".
    name, address = parseaddr(written)
    return Address(name, addr_spec=address)


def _attach(message: EmailMessage, attachment: Attachment) -> None:
    maintype, _, subtype = attachment.media_type.partition("/")
    if attachment.content_id is None:
        message.add_attachment(attachment.octets, maintype=maintype, subtype=subtype, filename=attachment.filename)
        return
    html = message.get_body(("html",))
    assert isinstance(html, EmailMessage)
    html.add_related(
        attachment.octets,
        maintype=maintype,
        subtype=subtype,
        filename=attachment.filename,
        disposition="inline",
        cid=f"<{attachment.content_id}>",
    )


def _name_boundaries(message: EmailMessage, slug: str) -> None:
    # The library draws boundaries at random where none is set.
    for number, part in enumerate(message.walk()):
        if part.is_multipart() and part.get_content_maintype() == "multipart":
            part.set_boundary(f"=_{slug}_{number}")
