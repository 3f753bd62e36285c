"""Any octets give a value: valid UTF-8, within the caps, each part within the message, in time linear in the octets."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.message import (
    BODY_PROPERTIES,
    CONTENT_PROPERTIES,
    HeaderForm,
    Part,
    base_subject,
    email_json,
    parse,
    preview,
    readable_text,
)
from shared.message.html import html_to_text

GOLDEN: Final = sorted((Path(__file__).parents[2] / "golden").glob("*.eml"))

PIECES: Final = [
    b"From: ", b"To: ", b"Subject: ", b"Date: ", b"References: ", b"List-Post: ", b"Content-ID: ", b"X: ", b"From me\n",
    b"Content-Type: ", b"Content-Disposition: ", b"Content-Transfer-Encoding: ", b"Content-Language: ",
    b"multipart/mixed; boundary=b", b'multipart/alternative; boundary="c"', b"multipart/digest; boundary=b",
    b"message/rfc822", b"text/html; charset=", b"text/plain; charset=", b"; format=flowed; delsp=yes", b"; name=",
    b"attachment; filename*0*=utf-8''%E9; filename*1=", b"base64", b"quoted-printable", b"utf-7", b"utf-16",
    b"iso-2022-jp", b"gb18030", b"hz", b"=?utf-8?Q?=E9", b"=?utf-7?B?", b"?=", b"=?iso-2022-kr?Q?", b"\r\n", b"\n",
    b"\r",
    b"\r\n\r\n", b"\r\n--b\r\n", b"\r\n--c\r\n", b"\r\n--b--\r\n", b"\r\n--c--\r\n", b"--b", b" ", b"\t", b"\0",
    b"(", b")",
    b'"', b"\\", b"<", b">", b"@", b",", b";", b":", b"=", b"+2AA-", b"\xff", b"\xed\xa0\x80", b"a@b.test",
    b"<div style='",
    b"display:none'>", b"<a href=", b"<table><td>", b"<style>.a{", b"}</style>", b"<!--", b"-->", b"&#xD800;", b"&#0;",
    b"> ", b"-- \r\n", b"3 Mar 2026 09:07:05 +0100", b"\x1b$B", b"~{",
]  # fmt: skip

mail_like = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=60).map(b"".join)
FORMS: Final = [f"header:X:{form}:all" for form in HeaderForm]


def everything(octets: bytes) -> dict[str, Any]:
    message = parse(octets)
    email: dict[str, Any] = email_json(
        message,
        properties=[*sorted(CONTENT_PROPERTIES), *FORMS],
        body_properties=[*sorted(BODY_PROPERTIES), *FORMS],
        fetch_all=True,
    )
    base_subject(email["subject"] or "")
    return email


def check(octets: bytes) -> None:
    json.dumps(everything(octets), ensure_ascii=False).encode("utf-8")
    message = parse(octets)
    reading = readable_text(message)
    for text in (reading.text, reading.reason, preview(message), *(found.text for found in reading.hidden)):
        text.encode("utf-8")
    assert len(preview(message)) <= 256
    spans = [(part.start, part.end) for part in message.root.walk() if not part.is_multipart]
    assert all(0 <= start <= end <= len(octets) for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert inside(message.root)


def inside(part: Part) -> bool:
    return all(part.start <= child.start and child.end <= part.end and inside(child) for child in part.subparts)


@given(st.binary(max_size=400))
def test_any_octets_give_a_value(octets: bytes) -> None:
    check(octets)


@settings(max_examples=400)
@given(mail_like)
def test_anything_that_looks_like_mail_gives_a_value(octets: bytes) -> None:
    check(octets)


@given(st.sampled_from(GOLDEN), st.integers(0, 3000), st.integers(0, 40), st.binary(max_size=6))
def test_a_hard_message_with_a_piece_torn_out_gives_a_value(path: Path, at: int, length: int, instead: bytes) -> None:
    octets = path.read_bytes()
    check(octets[:at] + instead + octets[at + length :])


@given(st.text(st.sampled_from("<>/='\" abptd!-&#;{}.:\n\ud800") | st.characters(categories=None), max_size=200))
def test_any_string_gives_a_text(html: str) -> None:
    reading = html_to_text(html.encode("utf-8", "replace").decode())
    (reading.text + "".join(found.text for found in reading.hidden)).encode("utf-8")


@given(st.text(max_size=80))
def test_a_base_subject_has_no_base_but_itself(subject: str) -> None:
    assert base_subject(subject) == base_subject(base_subject(subject))


# Linear time. Steps are counted, not seconds: calls and lines that the interpreter runs in this package.


class Steps:
    """Counts the lines that run in `shared.message` while it is entered."""

    def __init__(self) -> None:
        self.count = 0

    def _trace(self, frame: FrameType, *_: object) -> "Callable[..., Any] | None":
        if "shared/message" not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        self.count += 1
        return self._trace

    def of(self, work: Callable[[], object]) -> int:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            work()
        finally:
            sys.settrace(before)
        return self.count


@dataclass(frozen=True)
class Repeated:
    """A message whose one piece comes again and again, as often as a size asks."""

    head: bytes
    unit: bytes

    def __call__(self, size: int) -> bytes:
        return self.head + self.unit * (size // len(self.unit)) + b"\r\n\r\n"


def hostile() -> Iterator[tuple[str, Repeated]]:
    for field in ("To", "Subject", "References", "List-Post", "Content-Type", "Content-Disposition", "Content-ID"):
        for unit in (
            b"(",
            b"()",
            b'"',
            b'\\"',
            b"<",
            b"<>",
            b"a@b,",
            b"a:;",
            b"=?utf-8?Q?a?= ",
            b"=?",
            b"[",
            b"; a*1*=x",
        ):
            yield f"{field} {unit!r}", Repeated(f"{field}: ".encode(), unit)
    for name, head, unit in (
        ("delimiters", b"Content-Type: multipart/mixed; boundary=b\r\n\r\n", b"--b\r\n"),
        ("near delimiters", b"Content-Type: multipart/mixed; boundary=b\r\n\r\n", b"--a\r\n"),
        ("one boundary again and again", b"", b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"),
        ("fields", b"", b"a:b\r\n"),
        ("continuations", b"", b" a\r\n"),
        ("flowed", b"Content-Type: text/plain; format=flowed\r\n\r\n", b"> a \r\n"),
        ("divs", b"Content-Type: text/html\r\n\r\n", b"<div>"),
        ("closed divs", b"Content-Type: text/html\r\n\r\n", b"<div>x</div>"),
        ("cells", b"Content-Type: text/html\r\n\r\n", b"<table><tr><td>"),
        ("options", b"Content-Type: text/html\r\n\r\n", b"<option>x"),
        ("open tags", b"Content-Type: text/html\r\n\r\n", b"<a b='"),
        ("angles", b"Content-Type: text/html\r\n\r\n", b"<"),
        ("comments", b"Content-Type: text/html\r\n\r\n", b"<!--"),
        ("links", b"Content-Type: text/html\r\n\r\n", b"<a href=b:c>d</a>"),
        ("images", b"Content-Type: text/html\r\n\r\n", b"<img alt=a>"),
        ("quotes", b"Content-Type: text/html\r\n\r\n", b"<blockquote>a</blockquote>"),
        ("rules", b"Content-Type: text/html\r\n\r\n<style>", b".a{color:red}"),
        ("media", b"Content-Type: text/html\r\n\r\n<style>", b"@media print{"),
    ):
        yield name, Repeated(head, unit)


CASES: Final = dict(hostile())


@pytest.mark.parametrize("name", CASES)
def test_twice_the_octets_take_no_more_than_twice_the_steps(name: str) -> None:
    small, large = (Steps().of(partial(everything, CASES[name](size))) for size in (4_000, 16_000))
    assert 0 < small
    assert large <= 4 * 1.3 * small + 2_000


def test_sizes_that_would_show_a_slow_regular_expression_end() -> None:
    for make in CASES.values():
        octets = make(300_000)
        message = parse(octets)
        for name in ("To", "Subject", "References", "List-Post"):
            form = {"To": HeaderForm.ADDRESSES, "Subject": HeaderForm.TEXT, "References": HeaderForm.MESSAGE_IDS}
            message.header(name, form.get(name, HeaderForm.URLS))
        base_subject(octets.decode("latin-1"))
