"""Messages a second for parse, body lists and decoded text, against the standard library's `email` in the same run.

`python -m tests.bench.message_parse [SECONDS]`. The message is a median one: 8 KB, two dozen header fields, a plain
and an HTML alternative in quoted-printable, and a small attachment.
"""

import email
import email.policy
import quopri
import sys
import time
from base64 import encodebytes
from collections.abc import Callable
from typing import Final

from shared.message import (
    CONTENT_PROPERTIES,
    body_lists,
    body_value,
    email_json,
    parse,
    readable_text,
)

_SENTENCE: Final = "Der Kahn mit den zwölf Kisten läuft am Dienstag ein, bitte haltet die Rampe ab 7 Uhr frei. "


def median_message() -> bytes:
    """Return the octets of the message that is measured."""
    received = "".join(
        f"Received: from mx{hop}.example.test (mx{hop}.example.test [192.0.2.{hop}])\r\n"
        f"\tby in{hop}.example.org (Postfix) with ESMTPS id 4F7C{hop}\r\n"
        f"\tfor <ana@example.org>; Tue,  3 Mar 2026 09:0{hop}:05 +0100 (CET)\r\n"
        for hop in range(1, 6)
    )
    signature = "".join(f"\t{'abcdefgh' * 8}\r\n" for _ in range(5))
    plain = quopri.encodestring((_SENTENCE + "\r\n").encode() * 16).replace(b"\n", b"\r\n")
    html = quopri.encodestring(f"<p>{_SENTENCE}</p>\r\n".encode() * 20).replace(b"\n", b"\r\n")
    attached = encodebytes(bytes(range(256)) * 4).replace(b"\n", b"\r\n")
    head = (
        f"Return-Path: <bo@example.test>\r\nDelivered-To: ana@example.org\r\n{received}"
        "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.test;\r\n"
        f"\th=from:to:subject:date; s=k1; b=\r\n{signature}"
        "Authentication-Results: mx.example.org; dkim=pass header.d=example.test; spf=pass\r\n"
        "From: =?UTF-8?Q?Bo_L=C3=B6nd?= <bo@example.test>\r\n"
        'To: Ana Reyes <ana@example.org>, "Lager, Nord" <nord@example.org>\r\nCc: office@example.org\r\n'
        "Subject: =?UTF-8?B?S2FobiBhbSBEaWVuc3RhZywgUmFtcGUg?= =?UTF-8?Q?f=C3=BCr_zw=C3=B6lf?=\r\n"
        "Date: Tue, 3 Mar 2026 09:07:05 +0100\r\nMessage-ID: <bench@example.test>\r\n"
        "In-Reply-To: <root@example.org>\r\nReferences: <root@example.org> <mid@example.test>\r\n"
        "List-Unsubscribe: <https://example.test/u>\r\nX-Mailer: bench\r\nX-Spam-Score: 0.1\r\n"
        'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="mix=_1"\r\n\r\n'
        '--mix=_1\r\nContent-Type: multipart/alternative; boundary="alt=_2"\r\n\r\n'
        "--alt=_2\r\nContent-Type: text/plain; charset=utf-8\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
    )
    return b"".join(
        (
            head.encode(),
            plain,
            b"\r\n--alt=_2\r\nContent-Type: text/html; charset=utf-8\r\n",
            b"Content-Transfer-Encoding: quoted-printable\r\n\r\n",
            html,
            b'\r\n--alt=_2--\r\n--mix=_1\r\nContent-Type: application/pdf; name="plan.pdf"\r\n',
            b'Content-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename="plan.pdf"\r\n\r\n',
            attached,
            b"--mix=_1--\r\n",
        )
    )


def ours_text(octets: bytes) -> int:
    """Parse, body lists and the decoded text of each body part."""
    lists = body_lists(parse(octets))
    return sum(len(body_value(part).value) for part in {*lists.text_body, *lists.html_body})


def ours_whole(octets: bytes) -> int:
    """All that Email/get can ask for, the body values and the preview too."""
    return len(email_json(parse(octets), properties=sorted(CONTENT_PROPERTIES), fetch_all=True))


def ours_readable(octets: bytes) -> int:
    """Parse and the one text for reading."""
    return len(readable_text(parse(octets)).text)


def library_text(octets: bytes) -> int:
    """The same decoded texts by `email` with its default policy."""
    message = email.message_from_bytes(octets, policy=email.policy.default)
    texts = (part for part in message.walk() if part.get_content_type() in {"text/plain", "text/html"})
    return sum(len(part.get_content()) for part in texts)


def library_whole(octets: bytes) -> int:
    """What of Email/get `email` has: every header field decoded, every text, names and sizes."""
    message = email.message_from_bytes(octets, policy=email.policy.default)
    total = sum(len(str(value)) for _, value in message.items())
    for part in message.walk():
        if not part.is_multipart():
            total += len(part.get_content()) + len(part.get_filename() or "")
    return total


def rate(measured: Callable[[bytes], int], octets: bytes, seconds: float) -> float:
    """Return how many messages a second one core reads, by its own time: other programs do not count."""
    measured(octets)
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < seconds:
        for _ in range(20):
            measured(octets)
        count += 20
    return count / spent


def show(line: str) -> None:
    """Put a line on standard output."""
    sys.stdout.write(line + "\n")


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    octets = median_message()
    show(f"message: {len(octets)} octets")
    for label, ours, library in (
        ("parse, body lists, decoded text", ours_text, library_text),
        ("the whole Email", ours_whole, library_whole),
    ):
        our_rate, library_rate = rate(ours, octets, seconds), rate(library, octets, seconds)
        show(f"{label}: {our_rate:.0f}/s, email (default policy) {library_rate:.0f}/s: {our_rate / library_rate:.1f} x")
    show(f"parse and readable text: {rate(ours_readable, octets, seconds):.0f}/s")


if __name__ == "__main__":
    main()
