"""Messages a second, ours and others' in one run: parse and text, and everything that Email/get can be asked for.

`python -m tests.bench.message_parse [SECONDS] [INTERPRETER]`. The message is a median one: 8 KB, two dozen header
fields, a plain and an HTML alternative in quoted-printable, and a small attachment. INTERPRETER has `mail-parser` and
`fast-mail-parser` installed; without it only `email` is compared. `docs/message-bench.md` has the figures.
"""

import quopri
import subprocess
import sys
from base64 import encodebytes
from pathlib import Path
from typing import Final

from shared.message import (
    CONTENT_PROPERTIES,
    body_lists,
    body_value,
    email_json,
    parse,
    readable_text,
)
from tests.bench.other_parsers import Parser, best_rates, library_text, library_whole

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


# Everything of RFC 8621 §4.1, and the two header forms that no property of its own stands for.
_EVERYTHING: Final = (
    *sorted(CONTENT_PROPERTIES),
    "header:To:asGroupedAddresses",
    "header:List-Unsubscribe:asURLs",
)

# The fields of the message that may be read as text (RFC 8621 §4.1.2.2), each instance of each.
_AS_TEXT: Final = tuple(
    f"header:{name}:asText:all"
    for name in (
        *("Delivered-To", "DKIM-Signature", "Authentication-Results", "X-Mailer", "X-Spam-Score"),
        *("MIME-Version", "Content-Type", "Subject"),
    )
)


def ours_text(octets: bytes) -> int:
    """Parse, body lists and the decoded text of each body part."""
    lists = body_lists(parse(octets))
    return sum(len(body_value(part).value) for part in {*lists.text_body, *lists.html_body})


def ours_whole(octets: bytes) -> int:
    """All that Email/get can ask for in every header form, the body values, blob ids and the preview too."""
    return len(email_json(parse(octets), properties=_EVERYTHING, fetch_all=True))


def ours_every_field(octets: bytes) -> int:
    """The same, and every other header field decoded as text."""
    return len(email_json(parse(octets), properties=(*_EVERYTHING, *_AS_TEXT), fetch_all=True))


def ours_readable(octets: bytes) -> int:
    """Parse and the one text for reading."""
    return len(readable_text(parse(octets)).text)


def show(line: str) -> None:
    """Put a line on standard output."""
    sys.stdout.write(line + "\n")


def measure(ours: Parser, others: dict[str, Parser], octets: bytes, seconds: float) -> float:
    """Print our rate and each other's, and return ours."""
    rates = best_rates({"ours": ours, **others}, octets, seconds)
    our_rate = rates["ours"]
    show(f"  ours                     {our_rate:6.0f}/s")
    for name in others:
        other_rate = rates[name]
        show(f"  {name:24} {other_rate:6.0f}/s  ours is {our_rate / other_rate:.1f} times as fast")
    return our_rate


def measure_elsewhere(interpreter: str, octets: bytes, seconds: float, our_rate: float) -> None:
    """Print the rates of the parsers that only another interpreter has."""
    script = Path(__file__).with_name("other_parsers.py")
    answered = subprocess.run([interpreter, str(script), str(seconds)], input=octets, capture_output=True, check=True)
    for line in answered.stdout.decode().splitlines():
        name, _, other_rate = line.rpartition(" ")
        show(f"  {name:24} {float(other_rate):6.0f}/s  ours is {our_rate / float(other_rate):.1f} times as fast")


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    octets = median_message()
    show(f"message: {len(octets)} octets; messages a second of one core's own time, best of six rounds")
    show("parse, body lists, decoded text:")
    measure(ours_text, {f"email, {name}": library_text(name) for name in ("default", "compat32")}, octets, seconds)
    show("the whole Email, every header field decoded:")
    others = {f"email, {name}": library_whole(name, every_field=True) for name in ("default", "compat32")}
    measure(ours_every_field, others, octets, seconds)
    show("the whole Email, of other fields than those of RFC 5322 only the raw form:")
    others = {f"email, {name}": library_whole(name, every_field=False) for name in ("default", "compat32")}
    our_rate = measure(ours_whole, others, octets, seconds)
    if len(sys.argv) > 2:
        measure_elsewhere(sys.argv[2], octets, seconds, our_rate)
    show("parse and readable text:")
    measure(ours_readable, {}, octets, seconds)


if __name__ == "__main__":
    main()
