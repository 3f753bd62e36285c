"""A message as HTML and as source: three things hold the HTML, and each is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from change_executor.journal import evidence
from change_executor.review.headers import FRAME_POLICY
from tests.servers.desk import ReviewPage, reading

if TYPE_CHECKING:
    from change_executor.journal.journal import Proposal

HTML = b"""From: ada@example.org\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<h1>Hello</h1>\
<script>x()</script><img src=http://t.test/><form action=/stop><button>Approve the move</button></form>\
<a href="https://evil.test/x">bank.test</a>"""


@pytest.fixture
def page(review_page: ReviewPage) -> ReviewPage:
    return review_page


@pytest.fixture
def proposal(page: ReviewPage) -> Proposal:
    return page.rows.proposal(reading(has_html=True), source=HTML)


def test_the_frame_has_no_permission_and_its_answer_a_policy_of_its_own(page: ReviewPage, proposal: Proposal) -> None:
    client = page.signed_in()
    item = client.get(f"/p/{proposal.id}?view=html").text
    (frame,) = re.findall(r"<iframe[^>]*>", item)
    assert 'sandbox=""' in frame
    assert "allow" not in frame
    answer = client.get(f"/p/{proposal.id}/html")
    assert FRAME_POLICY == answer.headers["content-security-policy"]
    assert FRAME_POLICY.startswith("sandbox; default-src 'none'; form-action 'none'; base-uri 'none'")
    for name, value in {
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "x-frame-options": "SAMEORIGIN",
    }.items():
        assert value == answer.headers[name]
    assert "<h1>Hello</h1>" in answer.text
    assert "<u>bank.test</u> <mark>[evil.test]</mark>" in answer.text
    assert not re.search(r"<(script|img|form|button|a|style|link)\b|\son|style=|href", answer.text)


def test_the_text_comes_first_and_the_html_only_when_asked_for(page: ReviewPage, proposal: Proposal) -> None:
    text = page.signed_in().get(f"/p/{proposal.id}").text
    assert "<iframe" not in text
    assert f'href="/p/{proposal.id}?view=html"' in text
    plain = page.rows.proposal(reading(), source=b"Subject: x\r\n\r\nx")
    assert "view=html" not in page.signed_in().get(f"/p/{plain.id}").text


def test_the_source_is_shown_as_text_without_what_is_invisible(page: ReviewPage) -> None:
    proposal = page.rows.proposal(
        reading(), source="Subject: a\u202eb\r\n\r\n<script>x()</script>".encode() + b"\xff\x00"
    )
    text = page.signed_in().get(f"/p/{proposal.id}?view=source").text
    assert "Subject: ab\n\n&lt;script&gt;x()&lt;/script&gt;\ufffd" in text
    assert "<script>" not in text


def test_a_source_that_is_not_the_recorded_one_is_shown_to_nobody(page: ReviewPage, proposal: Proposal) -> None:
    with page.journal.writing() as writing:
        evidence.keep_source(writing, proposal.id, b"Subject: forged\r\n\r\nforged")
    client = page.signed_in()
    assert "forged" not in client.get(f"/p/{proposal.id}?view=source").text
    assert 404 == client.get(f"/p/{proposal.id}/html").status_code


def test_html_that_cannot_be_laid_out_is_said_so(page: ReviewPage) -> None:
    octets = HTML.partition(b"<h1>")[0] + b"<div>" * 20_000
    proposal = page.rows.proposal(reading(has_html=True), source=octets)
    assert "cannot be shown safely" in page.signed_in().get(f"/p/{proposal.id}/html").text


@pytest.mark.parametrize(
    "markup",
    [
        b"<p><img src=http://t.test/x><style>p{}</style></p>&nbsp;",
        b"<p " + b" ".join(b"a%d=1" % n for n in range(30_000)),
    ],
    ids=["images and styles alone", "cut off inside an element of 30,000 attributes"],
)
def test_html_of_which_nothing_is_left_is_said_so_and_not_left_blank(page: ReviewPage, markup: bytes) -> None:
    proposal = page.rows.proposal(reading(has_html=True), source=HTML.partition(b"<h1>")[0] + markup)
    client = page.signed_in()
    assert "is left to show" in client.get(f"/p/{proposal.id}/html").text
    whole = page.rows.proposal(reading(has_html=True), source=HTML)
    assert "is left to show" not in client.get(f"/p/{whole.id}/html").text


@pytest.mark.parametrize("path", ["/p/P{0}/html", "/p/nonsense/html"])
def test_what_has_no_source_has_no_html(page: ReviewPage, path: str) -> None:
    assert 404 == page.signed_in().get(path.format("v" * 20)).status_code


@pytest.mark.parametrize("view", ["", "nonsense", "HTML", "../x"])
def test_an_unknown_view_is_the_text(page: ReviewPage, proposal: Proposal, view: str) -> None:
    assert "Text of the message" in page.signed_in().get(f"/p/{proposal.id}?view={view}").text


def test_links_are_listed_by_their_real_host(page: ReviewPage) -> None:
    proposal = page.rows.proposal(reading(hosts=["shop.example", "<evil.test>"]))
    text = page.signed_in().get(f"/p/{proposal.id}").text
    assert "Links lead to" in text
    assert "&lt;evil.test&gt;" in text
