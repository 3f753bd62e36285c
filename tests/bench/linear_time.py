"""What 10 MB of the worst of each kind cost per octet, as a multiple of a typical message's octet.

Run from the top: `python -m tests.bench.linear_time [MEGABYTES]`. CPU time of this process, the best of three for the
typical message. Everything is asked for: parse, each property of Email, each form of a field, the text and its preview.
`tests/shared/message/test_linear.py` counts steps instead, so that it never depends on a clock.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from shared.message import (
    BODY_PROPERTIES,
    CONTENT_PROPERTIES,
    DEFAULT_BODY_PROPERTIES,
    HeaderForm,
    body_lists,
    email_json,
    parse,
    readable_text,
)
from shared.message.limits import MAX_HEADER_OCTETS
from tests.bench.message_parse import median_message

MEGABYTE: Final = 1_000_000


def _repeated(head: bytes, unit: bytes, tail: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: head + unit * max(1, (size - len(head) - len(tail)) // len(unit)) + tail


def _nested_multiparts(size: int) -> bytes:
    made, number, length = [], 0, 0
    while length < size:
        made.append(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (number, number))
        length += len(made[-1])
        number += 1
    return b"".join(made)


_HTML: Final = b"Content-Type: text/html; charset=utf-8\r\n\r\n"
_MIXED: Final = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
_PLAIN: Final = b"Content-Type: text/plain; charset=utf-8\r\n"

_BODY_KINDS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "nested divs": _repeated(_HTML, b"<div>"),
    "nested divs with text": _repeated(_HTML, b"<div>a"),
    "closed divs": _repeated(_HTML, b"<div>a</div>"),
    "styled spans": _repeated(_HTML, b'<span style="color:#123456;font-size:12px">a</span>'),
    "nested tables": _repeated(_HTML, b"<table><tr><td>"),
    "table cells": _repeated(_HTML + b"<table>", b"<td>a"),
    "lists": _repeated(_HTML, b"<ul><li>a</ul>"),
    "open formatting": _repeated(_HTML, b"<b><i>a<p>"),
    "links": _repeated(_HTML, b'<a href="https://a.test/b">c</a> '),
    "images": _repeated(_HTML, b'<img src="x" alt="a">'),
    "HTML quotes": _repeated(_HTML, b"<blockquote>a</blockquote>"),
    "nested HTML quotes": _repeated(_HTML, b"<blockquote>a"),
    "angles": _repeated(_HTML, b"<"),
    "tags that never end": _repeated(_HTML, b"<a b='"),
    "attributes": _repeated(_HTML + b"<p ", b"a=b "),
    "comments that never end": _repeated(_HTML, b"<!--"),
    "entities": _repeated(_HTML, b"&amp;&#x41;&nbsp;"),
    "ampersands": _repeated(_HTML, b"&"),
    "style rules": lambda size: (
        _repeated(_HTML + b"<style>", b".a{color:red}", b"</style>")(min(size, 2_000_000))
        + b"<p class=a>b" * (max(12, size - 2_000_000) // 12)
    ),
    "style rules and elements": lambda size: (
        _repeated(_HTML + b"<style>", b".a .b{color:red}", b"</style>")(min(size // 2, 400_000))
        + b"<p class='a b'>c" * (max(size // 2, size - 400_000) // 16)
    ),
    "nested multiparts": _nested_multiparts,
    "boundaries": _repeated(_MIXED, b"--b\r\n"),
    "nearly boundaries": _repeated(_MIXED, b"--a\r\n"),
    "parts": _repeated(_MIXED, b"--b\r\n\r\na\r\n"),
    "base64 garbage": _repeated(_PLAIN + b"Content-Transfer-Encoding: base64\r\n\r\n", b"a*=\xff"),
    "quoted-printable garbage": _repeated(_PLAIN + b"Content-Transfer-Encoding: quoted-printable\r\n\r\n", b"=z= \n="),
    "flowed lines": _repeated(b"Content-Type: text/plain; format=flowed\r\n\r\n", b"> a \r\n"),
    "plain quotes": _repeated(_PLAIN + b"\r\n", b"> a\r\n"),
    "bad UTF-8": _repeated(_PLAIN + b"\r\n", b"\xff"),
    "one long line": _repeated(_PLAIN + b"\r\n", b"word "),
}

# Each within one header, of which `MAX_HEADER_OCTETS` are read.
_HEADER_KINDS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "header fields": _repeated(b"", b"a: b\r\n", b"\r\n"),
    "subjects": _repeated(b"", b"Subject: =?utf-8?Q?a?=\r\n", b"\r\n"),
    "folding": _repeated(b"Subject:", b" a\r\n", b"\r\n"),
    "encoded-words": _repeated(b"Subject: ", b"=?utf-8?Q?a?= ", b"\r\n\r\n"),
    "nearly encoded-words": _repeated(b"Subject: ", b"=?utf-8?Q?a", b"\r\n\r\n"),
    "addresses": _repeated(b"To: ", b"a@b.test, ", b"\r\n\r\n"),
    "named addresses": _repeated(b"To: ", b'"A" <a@b.test>,', b"\r\n\r\n"),
    "groups": _repeated(b"To: ", b"a:;", b"\r\n\r\n"),
    "comments": _repeated(b"To: ", b"(", b"\r\n\r\n"),
    "quotes that never close": _repeated(b"To: ", b'\\"', b"\r\n\r\n"),
    "message ids": _repeated(b"References: ", b"<a@b> ", b"\r\n\r\n"),
    "quoted message ids": _repeated(b"References: ", b'"a" <"b"@c> ', b"\r\n\r\n"),
    "parameters": _repeated(b"Content-Type: text/plain", b"; a*1*=x", b"\r\n\r\n"),
}


def _with_a_body(make: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """A header of the kind, as large as it may be, and the rest of the size in body."""

    def made(size: int) -> bytes:
        header = make(min(size, MAX_HEADER_OCTETS - 1_000))
        return header + b"word\r\n" * ((size - len(header)) // 6)

    return made


KINDS: Final[Mapping[str, Callable[[int], bytes]]] = {
    **_BODY_KINDS,
    **{kind: _with_a_body(make) for kind, make in _HEADER_KINDS.items()},
}

_FORMS: Final = tuple(
    f"header:{name}:{form}"
    for name, form in (
        ("Subject", HeaderForm.TEXT),
        ("To", HeaderForm.ADDRESSES),
        ("To", HeaderForm.GROUPED_ADDRESSES),
        ("References", HeaderForm.MESSAGE_IDS),
        ("Date", HeaderForm.DATE),
        ("List-Unsubscribe", HeaderForm.URLS),
    )
)


def everything(octets: bytes) -> None:
    """Ask for everything that a message can be asked for."""
    message = parse(octets)
    email_json(
        message,
        properties=[*CONTENT_PROPERTIES, *_FORMS],
        body_properties=sorted(BODY_PROPERTIES | set(DEFAULT_BODY_PROPERTIES)),
        fetch_all=True,
    )
    readable_text(message)
    body_lists(message)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of a piece of work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def table(megabytes: float) -> Iterator[str]:
    """Yield the lines of a table as they are measured."""
    typical = median_message()
    everything(typical)
    per_octet = min(seconds(partial(everything, typical)) for _ in range(20)) / len(typical)
    yield f"A typical message: {len(typical):,} octets, {per_octet * 1e9:.0f} ns for each.\n"
    yield "| kind | octets | CPU s | times the typical octet |\n|---|---|---|---|"
    for kind, make in KINDS.items():
        octets = make(int(megabytes * MEGABYTE))
        spent = seconds(partial(everything, octets))
        yield f"| {kind} | {len(octets):,} | {spent:.2f} | {spent / len(octets) / per_octet:.1f} |"


if __name__ == "__main__":
    for line in table(float(sys.argv[1]) if len(sys.argv) > 1 else 10):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
