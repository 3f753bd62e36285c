"""Downloads: header fields that make them harmless and lasting, HEAD, ranges and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.agent_reader.jmap.downloading import ALL, MIXED, PICTURE, blob_of, get, url
from tests.agent_reader.served import ACCOUNT, House, house

pytestmark = pytest.mark.anyio


@pytest.fixture
def served(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path, ALL) as open_house:
        yield open_house


@pytest.mark.statement("176", "178")
async def test_what_comes_is_harmless_and_lasting(standing: House) -> None:
    headers = (await get(standing, url(blob_of(MIXED), content_type="text/html"))).headers
    assert "text/html" == headers["content-type"]
    assert "private, immutable, max-age=31536000" == headers["cache-control"]
    assert f'"{blob_of(MIXED)}"' == headers["etag"]
    assert "nosniff" == headers["x-content-type-options"]
    assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert headers["content-disposition"].startswith("attachment;")
    assert "same-origin" == headers["cross-origin-resource-policy"]
    # What one token is given is not for whoever else uses the same cache.
    assert "Authorization" in headers["vary"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("Grüße aus Köln.txt", "Grüße aus Köln.txt"),
        ("発注書.xlsx", "発注書.xlsx"),
        ('a"b.txt', "a_b.txt"),
        ("100%.txt", "100%.txt"),
        ("it's 100%41.txt", "it's 100%41.txt"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..\\..\\boot.ini", "_.._boot.ini"),
        (".bashrc", "bashrc"),
        ("a.txt:stream", "a.txt_stream"),
        ("exe\u202efdp.txt", "exefdp.txt"),
        ("a\U000e0041b.txt", "ab.txt"),
        ("", "download"),
        ("...", "download"),
        ("x" * 400 + ".pdf", "x" * 196 + ".pdf"),
        ("é" * 200 + ".pdf", "é" * 98 + ".pdf"),
    ],
)
@pytest.mark.statement("175", "176")
async def test_the_name_that_was_asked_for_is_made_harmless(standing: House, name: str, shown: str) -> None:
    field = (await get(standing, url(blob_of(MIXED), name))).headers["content-disposition"]
    assert "\n" not in field
    plain, _, extended = field.removeprefix("attachment; filename=").partition("; filename*=UTF-8''")
    assert plain[0] == plain[-1] == '"'
    assert plain[1:-1].isascii()
    assert '"' not in plain[1:-1]
    # RFC 8187 §3.2.1 value-chars.
    assert re.fullmatch(r"(?:[!#$&+.^_`|~0-9A-Za-z-]|%[0-9A-F]{2})*", extended)
    assert shown == (unquote(extended) if extended else plain[1:-1])


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        # A path with a line feed is in no table of routes.
        ("a\r\nSet-Cookie: x=y", 404, "not_found"),
        ("a\nb", 404, "not_found"),
        ("a\rb", 400, "invalid_name"),
        ("a\x00b", 400, "invalid_name"),
        ("a\x7fb", 400, "invalid_name"),
        ("a\x85b", 400, "invalid_name"),
        ("\t", 400, "invalid_name"),
    ],
)
@pytest.mark.statement("176")
async def test_a_name_with_control_characters_is_refused(standing: House, name: str, status: int, code: str) -> None:
    response = await get(standing, url(blob_of(MIXED), name))
    assert (status, code) == (response.status_code, response.json()["code"])
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", "application/octet-stream"),
        ("?type=", "application/octet-stream"),
        ("?type=image/svg+xml", "image/svg+xml"),
        ("?type=image%2Fsvg%2Bxml", "image/svg+xml"),
        ("?type=text/plain%3B%20charset%3Dutf-8", "text/plain; charset=utf-8"),
        ("?accept=1&type=text/csv", "text/csv"),
    ],
)
@pytest.mark.statement("175")
async def test_the_type_that_was_asked_for_comes_back(standing: House, query: str, shown: str) -> None:
    assert shown == (await get(standing, url(blob_of(MIXED)) + query)).headers["content-type"]


@pytest.mark.parametrize(
    "query",
    [
        "?type=text",
        "?type=text/",
        "?type=/plain",
        "?type=text/plain%0d%0aSet-Cookie:x=y",
        "?type=text/pl%C3%A4in",
        "?type=text/plain;charset",
        "?type=text/plain&type=text/html",
        "?type=text/plain%3B%20a%3D%22%5C%22",
        "?type=" + "a" * 300 + "/b",
        "?type=text/plain%00",
    ],
)
async def test_what_is_no_media_type_is_refused(standing: House, query: str) -> None:
    response = await get(standing, url(blob_of(MIXED)) + query)
    assert (400, "invalid_type") == (response.status_code, response.json()["code"])
    assert "set-cookie" not in response.headers


# Conditions and ranges


@pytest.mark.statement("178")
async def test_every_variable_may_be_percent_encoded(standing: House) -> None:
    def encoded(text: str) -> str:
        return "".join(f"%{octet:02x}" for octet in text.encode())

    account, blob, name = encoded(ACCOUNT), encoded(blob_of(MIXED)), encoded("Grüße 1.eml")
    answer = await get(standing, f"/jmap/download/{account}/{blob}/{name}?type={encoded('message/rfc822')}")
    assert (200, MIXED) == (answer.status_code, answer.content)
    assert "message/rfc822" == answer.headers["content-type"]
    assert "filename*=UTF-8''Gr%C3%BC%C3%9Fe%201.eml" in answer.headers["content-disposition"]


@pytest.mark.statement("178")
async def test_head_says_what_get_would_and_gives_no_octet(standing: House) -> None:
    head = await get(standing, url(blob_of(MIXED)), "HEAD")
    whole = await get(standing, url(blob_of(MIXED)))
    assert (200, b"") == (head.status_code, head.content)
    assert dict(head.headers) == dict(whole.headers)


@pytest.mark.parametrize("field", ['"{}"', 'W/"{}"', '"x", "{}"', "*"])
async def test_who_has_it_already_is_not_given_it_again(served: House, field: str) -> None:
    response = await get(served, url(blob_of(MIXED)), If_None_Match=field.format(blob_of(MIXED)))
    assert (304, b"") == (response.status_code, response.content)
    assert f'"{blob_of(MIXED)}"' == response.headers["etag"]
    assert not served.shelf.fetched
    assert not served.access.reads("clerk")


async def test_who_has_it_already_may_say_so_in_two_lines(standing: House) -> None:
    tags = [("If-None-Match", '"x"'), ("If-None-Match", f'"{blob_of(MIXED)}"')]
    async with standing.client() as client:
        response = await client.get(url(blob_of(MIXED)), headers=tags)
    assert 304 == response.status_code


@pytest.mark.parametrize(
    ("field", "status"),
    [('"{}"', 200), ('"x", "{}"', 200), ("*", 200), ('"x"', 412), ('W/"{}"', 412), ("{}", 412), ("", 412)],
)
async def test_who_wants_other_octets_than_these_is_refused(served: House, field: str, status: int) -> None:
    """RFC 9110 §13.1.1."""
    response = await get(served, url(blob_of(MIXED)), If_Match=field.format(blob_of(MIXED)), Range="bytes=0-1")
    assert (206 if status == 200 else status) == response.status_code
    if status == 412:
        assert "precondition_failed" == response.json()["code"]
        assert not served.shelf.fetched
        assert not served.access.reads("clerk")


SIZE = len(PICTURE)


@pytest.mark.parametrize(
    ("field", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-99", 0, 100),
        ("bytes=100-", 100, SIZE),
        ("bytes=-1", SIZE - 1, SIZE),
        ("bytes=-99999999", 0, SIZE),
        (f"bytes={SIZE - 1}-{SIZE + 5}", SIZE - 1, SIZE),
        ("Bytes=5-9", 5, 10),
        (f"bytes=7-{'9' * 40}", 7, SIZE),
        (f"bytes=-{'9' * 40}", 0, SIZE),
    ],
)
async def test_one_range_is_given(standing: House, field: str, start: int, end: int) -> None:
    response = await get(standing, url(blob_of(PICTURE)), Range=field)
    assert (206, PICTURE[start:end]) == (response.status_code, response.content)
    assert f"bytes {start}-{end - 1}/{SIZE}" == response.headers["content-range"]
    assert str(end - start) == response.headers["content-length"]


@pytest.mark.parametrize(
    "field", ["bytes=0-1,5-6", "octets=0-1", "bytes=5-1", "bytes=-", "bytes", "bytes=a-b", "bytes=1-2x", ""]
)
async def test_what_is_not_one_range_of_octets_is_ignored(standing: House, field: str) -> None:
    response = await get(standing, url(blob_of(PICTURE)), Range=field)
    assert (200, PICTURE) == (response.status_code, response.content)


@pytest.mark.parametrize("field", [f"bytes={SIZE}-", f"bytes={'9' * 40}-", "bytes=-0"])
async def test_a_range_that_is_not_there_is_refused_with_the_size(served: House, field: str) -> None:
    response = await get(served, url(blob_of(PICTURE)), Range=field)
    assert (416, f"bytes */{SIZE}") == (response.status_code, response.headers["content-range"])
    assert "range_not_satisfiable" == response.json()["code"]
    assert [] == served.access.reads("clerk")


async def test_a_range_counts_only_for_the_octets_that_the_client_has(standing: House) -> None:
    same, other = f'"{blob_of(PICTURE)}"', '"x"'
    assert 206 == (await get(standing, url(blob_of(PICTURE)), Range="bytes=0-1", If_Range=same)).status_code
    assert 200 == (await get(standing, url(blob_of(PICTURE)), Range="bytes=0-1", If_Range=other)).status_code


# The record
