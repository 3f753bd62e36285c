"""A large mailbox, written straight to disk as a Maildir: the same octets each time, and no library's idea of mail.

Plain, alternative and attached in turn, about 7 KB each, with references, repeated Message-IDs, German and words by
Zipf's law; the newest message is as old as the moment that is given, one each seventeen minutes before it.
"""

import base64
import os
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Final

MINUTES_APART: Final = 17
# Half to one and a half of it: the mean of a message without its headers.
_MEAN_OCTETS: Final = 6 * 1024
_VOCABULARY: Final = 20_000
_SYLLABLES: Final = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "wä", "zu", "for", "der", "ing", "tion", "ß")
_LINE: Final = 70
# Of ordinary mail, some is sent twice under one Message-ID.
_REPEATED: Final = 50


class LargeMailbox:
    """The messages of a mailbox by number, 0 the oldest; `newest` is when the last came in."""

    def __init__(self, messages: int, newest: datetime) -> None:
        self.messages, self.newest = messages, newest
        chance = random.Random(7)
        words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(_VOCABULARY)]
        # Drawn once: a text is a run of it from somewhere.
        self._prose = [words[int(_VOCABULARY ** chance.random()) - 1] for _ in range(500_000)]
        self._noise = chance.randbytes(1024 * 1024)

    def received_at(self, number: int) -> datetime:
        """When a message came in."""
        return self.newest - timedelta(minutes=MINUTES_APART * (self.messages - 1 - number))

    def octets(self, number: int) -> bytes:
        """One message."""
        chance = random.Random(number)
        size = int(_MEAN_OCTETS * chance.uniform(0.5, 1.5))
        match number % 5:
            case 0:
                kind, body = _attached(number, self._text(chance, size // 3), self._octets(chance, size // 2))
            case 1 | 3:
                kind, body = _alternative(number, self._text(chance, size // 2))
            case _:
                kind, body = "text/plain; charset=utf-8", self._text(chance, size)
        return ("\r\n".join((*self._fields(number), f"Content-Type: {kind}")) + "\r\n\r\n" + body).encode()

    def write(self, folder: Path, owner: tuple[int, int] | None) -> int:
        """Write all as a Maildir whose files belong to `owner`; return how many octets they have."""
        for name in ("cur", "new", "tmp"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            if owner is not None:
                os.chown(folder / name, *owner)
        total = 0
        for number, name in self._names():
            octets = self.octets(number)
            # Sizes in the name spare the server the counting, as they do where a delivery agent wrote them.
            path = folder / "cur" / f"{name},S={len(octets)},W={len(octets)}:2,{'S' if number % 3 else ''}"
            path.write_bytes(octets)
            moment = self.received_at(number).timestamp()
            os.utime(path, (moment, moment))
            if owner is not None:
                os.chown(path, *owner)
            total += len(octets)
        return total

    def _names(self) -> Iterator[tuple[int, str]]:
        return (
            (number, f"{int(self.received_at(number).timestamp())}.M{number}.bench") for number in range(self.messages)
        )

    def _fields(self, number: int) -> Iterator[str]:
        date = format_datetime(self.received_at(number))
        customer = f"c{number % 911}@customer.example"
        own = number - 1 if number % _REPEATED == 0 and number else number
        yield f"Return-Path: <{customer}>"
        yield (
            f"Received: from mx.example.org (mx.example.org [192.0.2.{number % 250}]) by mail.example.com"
            f"\r\n with ESMTPS id {number:x}; {date}"
        )
        yield f'From: "Customer {number % 911}" <{customer}>'
        yield "To: Shop <help@shop.example>"
        subject = f"Re: Bestellung {number // 4} — Größe" if number % 4 else f"order {number // 4}"
        encoded = base64.b64encode(subject.encode()).decode()
        yield f"Subject: {subject}" if subject.isascii() else f"Subject: =?utf-8?b?{encoded}?="
        yield f"Date: {date}"
        yield f"Message-ID: <m{own}.{1000 + own % 7}@mail.example.org>"
        if number % 4:
            before = number - 1
            yield f"In-Reply-To: <m{before}.{1000 + before % 7}@mail.example.org>"
        yield "MIME-Version: 1.0"

    def _text(self, chance: random.Random, octets: int) -> str:
        begin = chance.randrange(len(self._prose) - octets)
        lines: list[str] = []
        line = ""
        left = octets
        for word in self._prose[begin : begin + octets]:
            if len(line) + len(word) > _LINE:
                lines.append(line)
                left -= len(line) + 2
                line = ""
                if left <= 0:
                    break
            line = f"{line} {word}" if line else word
        return "\r\n".join(lines) + "\r\n"

    def _octets(self, chance: random.Random, octets: int) -> bytes:
        begin = chance.randrange(len(self._noise) - octets)
        return self._noise[begin : begin + octets]


def _alternative(number: int, text: str) -> tuple[str, str]:
    boundary = f"=_a{number}"
    html = f"<html><body><p>{text}</p></body></html>\r\n"
    parts = (("text/plain", text), ("text/html", html))
    body = "".join(
        f"--{boundary}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{content}"
        for kind, content in parts
    )
    return f'multipart/alternative; boundary="{boundary}"', f"{body}--{boundary}--\r\n"


def _attached(number: int, text: str, blob: bytes) -> tuple[str, str]:
    boundary = f"=_b{number}"
    encoded = base64.encodebytes(blob).decode().replace("\n", "\r\n")
    return f'multipart/mixed; boundary="{boundary}"', (
        f"--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n{text}"
        f'--{boundary}\r\nContent-Type: application/pdf; name="invoice{number}.pdf"\r\n'
        f'Content-Disposition: attachment; filename="invoice{number}.pdf"\r\n'
        f"Content-Transfer-Encoding: base64\r\n\r\n{encoded}--{boundary}--\r\n"
    )
