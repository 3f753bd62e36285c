"""Links that show one host and lead to another, names that imitate others, and links made harmless."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.message import (
    LinkConcern,
    LinkFinding,
    defang,
    host_of,
    hosts_of_links,
    link_findings,
    parse,
    readable_text,
)
from shared.message.domains import (
    _LOOK_ALIKES,
    _LOOKS_LIKE,
    DomainConcern,
    KnownHosts,
    domain_concerns,
    readable_host,
)
from shared.message.html import html_to_text
from shared.message.limits import MAX_TITLES
from shared.message.links import judge_link
from tests.shared.message.mail import entity

HEAD = ("From: Ann <ann@example.org>", "To: shop@example.com")


def found_in(html: str, *fields: str) -> list[LinkFinding]:
    message = parse(entity("text/html; charset=utf-8", html, *(fields or HEAD)))
    return list(link_findings(message, readable_text(message)))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://a.example/x", "a.example"),
        ("HTTPS://A.Example:8443/x", "a.example"),
        ("//a.example/x", "a.example"),
        ("https:\\\\a.example\\b.example", "a.example"),
        ("https://b.example@a.example/", "a.example"),
        ("https://b.example:pw@a.example/", "a.example"),
        ("https://a.example?@b.example", "a.example"),
        ("https://a.example#@b.example", "a.example"),
        ("https://%61.example/", "a.example"),
        ("https://a\u3002example/", "a.example"),
        ("https://xn--mnchen-3ya.de/", "münchen.de"),
        ("https://a.example./", "a.example"),
        ("https://[2001:db8::1]:80/", "[2001:db8::1]"),
        ("www.a.example/x", "www.a.example"),
        ("mailto:eve@a.example?cc=b@b.example", "a.example"),
        ("tel:+3112345", ""),
        ("", ""),
    ],
)
def test_the_host_is_the_one_that_a_browser_would_ask(url: str, host: str) -> None:
    assert host == host_of(url)


@pytest.mark.parametrize(
    ("label", "target", "host", "shown"),
    [
        ("https://bank.example/", "https://evil.example/", "evil.example", "bank.example"),
        ("bank.com", "https://evil.example/", "evil.example", "bank.com"),
        ("Visit www.bank.example/login now", "https://evil.example/", "evil.example", "www.bank.example"),
        ("ann@bank.com", "mailto:eve@evil.example", "evil.example", "bank.com"),
        ("https://bank.example/", "https://bank.example.evil.example/", "bank.example.evil.example", "bank.example"),
        ("https://bank.example/", "https://bank.example@evil.example/", "evil.example", "bank.example"),
        ("ba\u200bnk.com", "https://evil.example/", "evil.example", "bank.com"),
    ],
)
def test_a_label_that_names_another_host_is_found(label: str, target: str, host: str, shown: str) -> None:
    assert LinkFinding(LinkConcern.NAMES_ANOTHER_HOST, host, shown) in list(judge_link(label, target))


@pytest.mark.parametrize(
    ("label", "target"),
    [
        ("click here", "https://a.example/"),
        ("https://a.example/x", "https://a.example/y"),
        ("a.example", "https://www.a.example/"),
        ("www.a.example", "https://a.example/"),
        ("a.com", "https://shop.a.com/"),
        ("Node.js", "https://other.example/"),
        ("report.pdf", "https://a.example/r"),
        ("e.g. this", "https://a.example/"),
        ("münchen.de", "https://xn--mnchen-3ya.de/"),
        ("first.last@a.com", "mailto:first.last@a.com"),
        ("12.50", "https://a.example/"),
    ],
)
def test_a_label_that_names_no_other_host_is_left_alone(label: str, target: str) -> None:
    assert [] == list(judge_link(label, target))


def test_a_user_that_looks_like_a_host_disguises_the_real_one() -> None:
    found = list(judge_link("", "https://bank.example:443@evil.example/"))
    assert [LinkFinding(LinkConcern.DISGUISED_HOST, "evil.example", "bank.example")] == found


@pytest.mark.parametrize(
    ("host", "concerns"),
    [
        ("example.org", []),
        ("münchen.de", []),
        ("пример.рф", []),
        ("пример.com", []),
        ("日本カタカナabc.jp", []),
        ("한국abc.kr", []),
        ("xn--e1afmkfd.xn--p1ai", []),
        # Cyrillic letters within a Latin word, and the word as it travels.
        ("ex\u0430mple.org", [DomainConcern.MIXED_SCRIPTS]),
        ("xn--exmple-4nf.org", [DomainConcern.MIXED_SCRIPTS]),
        ("g\u03bfogle.com", [DomainConcern.MIXED_SCRIPTS]),
        # A whole word of another script that spells ASCII; under a top domain of its own script it is a word.
        ("\u0430\u0440\u0440\u04cf\u0435.com", [DomainConcern.LOOK_ALIKE]),
        ("xn--80ak6aa92e.com", [DomainConcern.LOOK_ALIKE]),
        ("\u0441\u043e\u0440.рф", []),
        ("xn--a.org", [DomainConcern.NOT_DECODABLE]),
        ("xn--.org", [DomainConcern.NOT_DECODABLE]),
        ("192.0.2.1", [DomainConcern.ADDRESS_INSTEAD_OF_NAME]),
        ("3221225985", [DomainConcern.ADDRESS_INSTEAD_OF_NAME]),
        ("0xc0000201", [DomainConcern.ADDRESS_INSTEAD_OF_NAME]),
        ("[2001:db8::1]", [DomainConcern.ADDRESS_INSTEAD_OF_NAME]),
    ],
)
def test_a_name_is_judged_by_what_it_shows(host: str, concerns: list[DomainConcern]) -> None:
    assert concerns == list(domain_concerns(host))


@pytest.mark.parametrize(
    ("host", "is_imitation"),
    [
        ("example.org", False),
        ("mail.example.org", False),
        ("examp1e.org", True),
        ("exarnple.org", True),
        ("www.examp1e.org", True),
        ("mail.examp1e.org", True),
        ("exämple.org", True),
        ("example.com", False),
        ("example.org.evil.net", False),
    ],
)
def test_a_name_that_looks_like_the_recipients_own_is_a_look_alike(host: str, is_imitation: bool) -> None:
    known = KnownHosts(["example.org"])
    assert is_imitation is (DomainConcern.LOOK_ALIKE in domain_concerns(host, known))


def test_the_letters_of_the_table_are_letters_of_other_scripts_or_marks_and_each_stands_once() -> None:
    assert len(_LOOKS_LIKE) == sum(map(len, _LOOK_ALIKES.values()))
    for code, plain in _LOOKS_LIKE.items():
        assert not chr(code).isascii()
        assert plain.isascii()
        assert unicodedata.normalize("NFKC", chr(code)) == chr(code), unicodedata.name(chr(code))


def test_links_and_senders_of_a_message_are_judged_together_and_each_finding_stands_once() -> None:
    html = (
        '<a href="https://evil.example/1">https://bank.example</a><a href="https://evil.example/2">bank.example</a>'
        "<p>https://ex\u0430mple.org/ and http://192.0.2.7/, or https://fine.example.</p>"
    )
    fields = ("From: Boss <boss@examp1e.com>", "To: shop@example.com")
    assert [
        LinkFinding(LinkConcern.LOOK_ALIKE, "examp1e.com"),
        LinkFinding(LinkConcern.NAMES_ANOTHER_HOST, "evil.example", "bank.example"),
        LinkFinding(LinkConcern.MIXED_SCRIPTS, "ex\u0430mple.org"),
        LinkFinding(LinkConcern.ADDRESS_INSTEAD_OF_NAME, "192.0.2.7"),
    ] == found_in(html, *fields)


def test_an_ordinary_message_has_no_finding() -> None:
    html = '<p>See <a href="https://example.org/a">our page</a> or <a href="mailto:a@example.org">a@example.org</a>.'
    assert [] == found_in(html)


def test_what_a_finding_shows_is_clean() -> None:
    found = found_in('<a href="https://evil.example\u202e/">https://ba\u200bnk.example</a>')
    assert [("evil.example", "bank.example")] == [(each.host, each.shown) for each in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://a.example.org/x.html now", "see hxxps://a[.]example[.]org/x.html now"),
        ("HTTP://A.example", "hxxp://A[.]example"),
        ("ftp://a.example/b.c", "fxp://a[.]example/b.c"),
        ("<www.a.example/b.c>", "<www[.]a[.]example/b.c>"),
        ("mailto:a@b.example", "mailto[:]a@b.example"),
        ("javascript:x()", "javascript[:]x()"),
        ("https://u.v@a.example:80/", "hxxps://u[.]v@a[.]example:80/"),
        ("https://a[.]b.example/", "hxxps://a[.]b[.]example/"),
        ("no link. At all: none", "no link. At all: none"),
        ("https:\\\\a.example", "hxxps:\\\\a[.]example"),
    ],
)
def test_a_link_is_defanged_and_can_still_be_read(text: str, expected: str) -> None:
    assert expected == defang(text)


URLISH = st.text(st.sampled_from("htpsfw:/\\.@[]xa1 mailto<>"), max_size=60)


@given(URLISH)
def test_defanging_is_idempotent_and_leaves_no_live_link(text: str) -> None:
    once = defang(text)
    assert once == defang(once)
    assert "http://" not in once
    assert "https://" not in once


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_label_and_target_give_a_value(label: str, target: str) -> None:
    assert isinstance(list(judge_link(label, target, KnownHosts([label, target]))), list)
    assert isinstance(domain_concerns(target), tuple)


@given(st.text(max_size=60))
def test_a_readable_name_stays_as_it_is(host: str) -> None:
    assert readable_host(host) == readable_host(readable_host(host))


@pytest.mark.parametrize(
    ("html", "hosts"),
    [
        ('<a href="http://evil.example/">https://bank.example/</a>', ("evil.example",)),
        ('<a href="http://evil.example/">see https://bank.example/ now</a>', ("evil.example",)),
        ('<a href="https://a.example/">a</a> or type https://b.example/x', ("a.example", "b.example")),
        ('<a href="mailto:x@y.example">write</a> <a href="https://a.example/">a</a>', ("a.example",)),
    ],
)
def test_only_hosts_that_a_link_leads_to_are_named(html: str, hosts: tuple[str, ...]) -> None:
    assert hosts == hosts_of_links(readable_text(parse(entity("text/html; charset=utf-8", html, *HEAD))))


def test_titles_are_told_where_their_element_is_seen_and_no_more_than_a_thousand() -> None:
    html = '<p title="seen  here">a</p><p style="display:none" title="hidden">b</p><p title="">c</p>'
    assert ("seen here",) == html_to_text(html).titles
    assert MAX_TITLES == len(html_to_text('<b title="x">y</b>' * (MAX_TITLES + 5)).titles)
    both = ('<b title="x">y</b>' * MAX_TITLES).encode()
    mixed = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"".join(
        b"--b\r\nContent-Type: text/html\r\n\r\n" + both + b"\r\n" for _ in range(2)
    )
    assert MAX_TITLES == len(readable_text(parse(mixed + b"--b--\r\n")).titles)
