"""A mailbox of 2,000 messages such as a small shop has: talk with everything quoted below, newsletters, notices.

The same numbers give the same mailbox, but for the day on which it ends: the last messages are of today.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

OWNER: Final = "Alex Moreno <alex@moreno-ceramics.example>"
COUNT: Final = 2_000
DAYS: Final = 180

DISCLAIMER: Final = (
    "This message and its attachments are confidential and intended for the addressee alone. If you have received it "
    "in error, please notify the sender and delete it. Opinions are the sender's and do not bind the company. "
    "Registered office: 14 Quay Street. Registered in England, no. 04417822. Think of the environment before printing."
)

_WORDS: Final = (
    *("glaze", "order", "kiln", "delivery", "shelf", "sample", "batch", "colour", "price", "week", "stock", "invoice"),
    *("customer", "shop", "website", "photo", "carton", "label", "supplier", "clay", "studio", "workshop", "opening"),
    *("holiday", "van", "driver", "pallet", "receipt", "bank", "insurance", "meeting", "list", "draft"),
)
_OPENINGS: Final = (
    "Thanks for getting back so quickly.",
    "I hope the week began well for you.",
    "Just a short note before the weekend.",
    "As we said on the phone this morning.",
    "Sorry for the delay on our side.",
)
_PEOPLE: Final = (
    ("Ines Duarte", "ines@duarte-kilns.example", "Duarte Kilns Lda\nSales\n+351 21 555 0142"),
    ("Tom Becker", "tom@becker-plumbing.example", "Becker Plumbing\nMaster plumber\nMobile: +44 7700 900318"),
    ("Mara Lindqvist", "mara@studio-lindqvist.example", "Studio Lindqvist\nArchitects\nStockholm"),
    ("Priya Nair", "priya@moreno-ceramics.example", "Moreno Ceramics\nProduction"),
    ("Jonas Weber", "jonas@moreno-ceramics.example", "Moreno Ceramics\nShipping"),
    ("Wen Zhao", "wen@zhao-packaging.example", "Zhao Packaging\nAccount manager"),
    ("Oakfield Stores", "purchasing@oakfield.example", "Oakfield Stores Ltd\nPurchasing"),
    ("Harbour Print", "accounts@harbour-print.example", "Harbour Print\nAccounts receivable"),
    ("Amelie Roux", "amelie@galerie-roux.example", "Galerie Roux\n12 rue des Arts, Lyon"),
    ("Derek Holt", "derek@holt-lettings.example", "Holt Lettings\nProperty management"),
)
PEOPLE: Final = {name: (address, signature) for name, address, signature in _PEOPLE}


@dataclass(frozen=True, slots=True)
class Letter:
    """One message and where it lies."""

    mailbox: str
    at: datetime
    octets: bytes
    seen: bool = True


@dataclass(slots=True)
class Talk:
    """A conversation: every message quotes all that came before, as mail programs do."""

    number: int
    subject: str
    _said: list[tuple[str, datetime, str]] = field(default_factory=list)

    def letter(self, who: str, at: datetime, text: str, mailbox: str = "INBOX", *, seen: bool = True) -> Letter:
        address, signature = PEOPLE.get(who, ("alex@moreno-ceramics.example", "Moreno Ceramics\nAlex Moreno"))
        place = len(self._said)
        body = f"{text}\n\nBest regards\n{who}\n\n-- \n{who}\n{signature}\n\n{DISCLAIMER}\n"
        quoted = "\n".join(f"> {line}" for line in self._quoted().split("\n")) if self._said else ""
        if self._said:
            name, when, _ = self._said[-1]
            body += f"\nOn {when:%a, %d %b %Y at %H:%M}, {name} wrote:\n{quoted}\n"
        self._said.append((who, at, body))
        is_own = who not in PEOPLE
        headers = {
            "From": OWNER if is_own else f"{who} <{address}>",
            "To": "amelie@galerie-roux.example" if is_own else OWNER,
            "Subject": self.subject if place == 0 else f"Re: {self.subject}",
            "Date": format_datetime(at),
            "Message-ID": f"<{self.number}.{place}@talk.example>",
            "Content-Type": "text/plain; charset=utf-8",
            "Content-Transfer-Encoding": "8bit",
        }
        if place:
            headers["In-Reply-To"] = f"<{self.number}.{place - 1}@talk.example>"
            headers["References"] = " ".join(f"<{self.number}.{each}@talk.example>" for each in range(place))
        return Letter("Sent" if is_own else mailbox, at, _message(headers, body), seen)

    def _quoted(self) -> str:
        return self._said[-1][2]


def notice(
    number: int, sender: str, subject: str, lines: tuple[str, ...], at: datetime, *, seen: bool = True
) -> Letter:
    """What a shop's system sends: the same in plain text and in HTML, with links that count who follows them."""
    token = base64.urlsafe_b64encode(random.Random(number).randbytes(90)).decode()
    link = f"https://click.mailer.example/t/{number}?u={token}&utm_source=mail&utm_campaign=notice"
    plain = "\n\n".join((*lines, f"View in your account: {link}", f"Unsubscribe: {link}&off=1", DISCLAIMER))
    cells = "".join(
        f'<tr><td style="font-family:Arial,Helvetica,sans-serif;font-size:14px;line-height:22px;padding:8px 24px">'
        f"{line}</td></tr>"
        for line in lines
    )
    html = (
        "<!DOCTYPE html><html><head><style>body{margin:0;padding:0;background:#f4f4f4} a{color:#0a66c2}"
        " .btn{border-radius:4px;padding:12px 24px;background:#0a66c2;color:#fff} @media(max-width:600px)"
        "{.wrap{width:100%!important}}</style></head><body>"
        f'<img src="https://pixel.mailer.example/{token}.gif" width="1" height="1" alt="">'
        f'<table class="wrap" width="600" align="center"><tbody>{cells}<tr><td><a class="btn" href="{link}">View in '
        f'your account</a></td></tr><tr><td style="font-size:11px;color:#888">{DISCLAIMER} <a href="{link}&off=1">'
        "Unsubscribe</a></td></tr></tbody></table></body></html>"
    )
    body = (
        f"--part\nContent-Type: text/plain; charset=utf-8\n\n{plain}\n"
        f"--part\nContent-Type: text/html; charset=utf-8\n\n{html}\n--part--\n"
    )
    headers = {
        "From": sender,
        "To": OWNER,
        "Subject": subject,
        "Date": format_datetime(at),
        "Message-ID": f"<{number}@notice.example>",
        "MIME-Version": "1.0",
        "Content-Type": 'multipart/alternative; boundary="part"',
    }
    return Letter("INBOX", at, _message(headers, body), seen)


def with_attachment(number: int, who: str, subject: str, text: str, name: str, rows: str, at: datetime) -> Letter:
    """A message with a table as a file."""
    address, signature = PEOPLE[who]
    content = base64.encodebytes(rows.encode()).decode()
    body = (
        f"--part\nContent-Type: text/plain; charset=utf-8\n\n{text}\n\n-- \n{who}\n{signature}\n\n{DISCLAIMER}\n"
        f'--part\nContent-Type: text/csv; name="{name}"\nContent-Disposition: attachment; filename="{name}"\n'
        f"Content-Transfer-Encoding: base64\n\n{content}\n--part--\n"
    )
    headers = {
        "From": f"{who} <{address}>",
        "To": OWNER,
        "Subject": subject,
        "Date": format_datetime(at),
        "Message-ID": f"<{number}@attached.example>",
        "MIME-Version": "1.0",
        "Content-Type": 'multipart/mixed; boundary="part"',
    }
    return Letter("INBOX", at, _message(headers, body))


def filler(count: int, now: datetime) -> Iterator[Letter]:
    """The mail between what is looked for: two fifths talk, two fifths notices, the rest newsletters."""
    chance = random.Random(2_000)
    number = 0
    while number < count:
        at = now - timedelta(days=2 + (number * (DAYS - 4)) / count, minutes=chance.randrange(600))
        kind = chance.random()
        if kind < 0.4:
            talk = Talk(10_000 + number, " ".join(chance.sample(_WORDS, 3)).capitalize())
            for step in range(min(chance.randrange(2, 7), count - number)):
                who = chance.choice(_PEOPLE)[0] if step % 3 != 2 else "Alex Moreno"
                yield talk.letter(who, at + timedelta(hours=step), _prose(chance), seen=True)
                number += 1
            continue
        if kind < 0.8:
            shop = chance.choice(("Parcel", "Market", "Cloud", "Travel", "Bank"))
            subject = f"{shop}: {' '.join(chance.sample(_WORDS, 3))} {chance.randrange(10_000, 99_999)}"
            lines = tuple(_prose(chance) for _ in range(3))
            yield notice(20_000 + number, f"{shop} <no-reply@{shop.lower()}.example>", subject, lines, at)
        else:
            lines = tuple(_prose(chance) for _ in range(9))
            sender = "The Potters' Letter <news@potters.example>"
            yield notice(30_000 + number, sender, f"This week: {' '.join(chance.sample(_WORDS, 4))}", lines, at)
        number += 1


def _prose(chance: random.Random) -> str:
    sentences = [chance.choice(_OPENINGS)]
    for _ in range(chance.randrange(2, 6)):
        words = chance.sample(_WORDS, 8)
        sentences.append(
            f"About the {words[0]} and the {words[1]}: we would {words[2]} the {words[3]} once the {words[4]} is in, "
            f"and the {words[5]} for the {words[6]} can wait until after the {words[7]}."
        )
    return " ".join(sentences)


def _message(headers: dict[str, str], body: str) -> bytes:
    head = "".join(f"{name}: {value}\n" for name, value in headers.items())
    return f"{head}\n{body}".replace("\n", "\r\n").encode()


def today() -> datetime:
    """The moment at which the mailbox ends."""
    return datetime.now(UTC).replace(microsecond=0)
