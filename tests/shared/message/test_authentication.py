"""Whose Authentication-Results are believed, and how the field parses; the examples are those of RFC 8601."""

from __future__ import annotations

import pytest

from shared.message import (
    AuthenticationProperty,
    AuthenticationVerdict,
    Belief,
    MethodResult,
    authentication,
    parse,
    parse_authentication_results,
)

OURS = "mx.example.org"


def message(*fields: str) -> bytes:
    return (
        "".join(f"Authentication-Results: {field}\r\n" for field in fields).encode() + b"From: a@example.com\r\n\r\nx"
    )


def results_of(text: str) -> list[tuple[str, str]]:
    parsed = parse_authentication_results(text)
    assert parsed is not None
    return [(result.method, result.result) for result in parsed.results]


# RFC 8601 appendix B, unfolded, one after the other.
NONE = "example.org 1; none"
SPF = "example.com; spf=pass smtp.mailfrom=example.net"
TWO = "example.com; auth=pass (cram-md5) smtp.auth=sender@example.net; spf=pass smtp.mailfrom=example.net"
DKIM_FAIL = 'example.com; dkim=fail reason="signature verification failed" header.i=@newyork.example.com'
# §B.7
COMMENTS = (
    "foo.example.net (foobar) 1 (baz);"
    "    dkim (Because I like it) / 1 (One yay) = (wait for it) fail"
    "      policy (A dot can go here) . (like that) expired"
    "      (this surprised me) = (as I wasn't expecting it) 1362471462"
)


def test_a_field_without_results_says_that_nothing_was_verified() -> None:
    parsed = parse_authentication_results(NONE)
    assert parsed is not None
    assert ("example.org", 1, ()) == (parsed.authserv_id, parsed.version, parsed.results)


def test_a_method_comes_with_its_result_and_what_was_looked_at() -> None:
    parsed = parse_authentication_results(SPF)
    assert parsed is not None
    expected = MethodResult("spf", "pass", None, (AuthenticationProperty("smtp", "mailfrom", "example.net"),))
    assert (expected,) == parsed.results


def test_several_methods_stand_in_one_field() -> None:
    assert [("auth", "pass"), ("spf", "pass")] == results_of(TWO)


def test_a_reason_is_no_property() -> None:
    parsed = parse_authentication_results(DKIM_FAIL)
    assert parsed is not None
    expected = MethodResult(
        "dkim",
        "fail",
        "signature verification failed",
        (AuthenticationProperty("header", "i", "@newyork.example.com"),),
    )
    assert (expected,) == parsed.results


def test_comments_stand_between_any_two_words() -> None:
    parsed = parse_authentication_results(COMMENTS)
    assert parsed is not None
    assert ("foo.example.net", 1) == (parsed.authserv_id, parsed.version)
    expected = MethodResult("dkim", "fail", None, (AuthenticationProperty("policy", "expired", "1362471462"),))
    assert (expected,) == parsed.results


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.example; SPF=Pass", [("spf", "pass")]),
        ('"a b.example"; spf=pass', [("spf", "pass")]),
        ("a.example;spf=pass;", [("spf", "pass")]),
        ("a.example; spf=pass (a; dkim=pass (b) \\) c)", [("spf", "pass")]),
        ('a.example; spf=fail reason="x; dkim=pass"', [("spf", "fail")]),
        ('a.example; spf=fail smtp.mailfrom="x; dkim=pass"@b.example', [("spf", "fail")]),
        ("a.example; spf=pass smtp.mailfrom=<>", [("spf", "pass")]),
        ("a.example; dkim=pass header.b=AbC+/d= header.s=s1", [("dkim", "pass")]),
        ("a.example; dmarc=pass (p=NONE) header.from=b.example", [("dmarc", "pass")]),
        ("a.example; dkim/2=pass", [("dkim/2", "pass")]),
        ("a.example; none=pass", [("none", "pass")]),
    ],
)
def test_the_grammar_is_read_whole(text: str, expected: list[tuple[str, str]]) -> None:
    assert expected == results_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "a.example",
        "a.example spf=pass",
        "a.example; spf",
        "a.example; spf=",
        "a.example; spf=pass smtp.mailfrom",
        "a.example; spf=pass smtp=x",
        "a.example; spf=pass (unclosed",
        'a.example; spf=pass reason="unclosed',
        "a.example; spf=pass dkim=pass",
        "a.example; none; spf=pass",
        "a.example;; spf=pass",
        "a.example; " + "spf=pass;" * 101 + "spf=pass",
        "a.example; spf=pass " + "x" * 20_000,
    ],
)
def test_a_field_that_breaks_the_grammar_is_no_result(text: str) -> None:
    assert parse_authentication_results(text) is None


def test_without_a_configured_id_nobody_is_believed() -> None:
    found = authentication(parse(message(f"{OURS}; dmarc=pass")), None)
    assert (Belief.NOT_CONFIGURED, "", (), 1) == (found.belief, found.source, found.results, found.unbelieved)
    assert found.verdict is AuthenticationVerdict.UNKNOWN


@pytest.mark.parametrize(
    "spelled", [OURS, "MX.Example.ORG", "mx.example.org.", '"mx.example.org"', "(x) mx.example.org"]
)
def test_the_configured_servers_field_is_believed(spelled: str) -> None:
    found = authentication(parse(message(f"{spelled}; dmarc=pass header.from=example.com")), OURS)
    assert (Belief.BELIEVED, OURS, AuthenticationVerdict.PASSED) == (found.belief, found.source, found.verdict)


@pytest.mark.parametrize(
    "forged",
    [
        "mx.example.com; dmarc=pass",
        "evil.example (mx.example.org); dmarc=pass",
        "mx.example.org.evil.example; dmarc=pass",
        '"mx.example.org x"; dmarc=pass',
        "; dmarc=pass",
    ],
)
def test_another_servers_field_is_not_believed_wherever_it_stands(forged: str) -> None:
    alone = authentication(parse(message(forged)), OURS)
    assert (Belief.NO_FIELD, AuthenticationVerdict.UNKNOWN, 1) == (alone.belief, alone.verdict, alone.unbelieved)
    above = authentication(parse(message(forged, f"{OURS}; dmarc=fail")), OURS)
    assert (Belief.BELIEVED, AuthenticationVerdict.FAILED, 1) == (above.belief, above.verdict, above.unbelieved)


def test_a_second_field_of_the_same_id_further_down_is_not_believed() -> None:
    found = authentication(parse(message(f"{OURS}; spf=fail", f"{OURS}; dmarc=pass")), OURS)
    assert (AuthenticationVerdict.FAILED, 1) == (found.verdict, found.unbelieved)


@pytest.mark.parametrize("damaged", [f"{OURS}; dmarc=", f"{OURS} 2; dmarc=pass", f"{OURS}; dmarc=pass (", OURS])
def test_an_unreadable_field_of_ours_is_no_verdict_and_the_next_one_is_not_asked(damaged: str) -> None:
    found = authentication(parse(message(damaged, f"{OURS}; dmarc=pass")), OURS)
    assert (Belief.UNREADABLE, AuthenticationVerdict.UNKNOWN) == (found.belief, found.verdict)


def test_a_folded_field_is_one_field() -> None:
    found = authentication(parse(message(f"{OURS};\r\n\tspf=pass\r\n smtp.mailfrom=a.example;\r\n dkim=fail")), OURS)
    assert [("spf", "pass"), ("dkim", "fail")] == [(each.method, each.result) for each in found.results]


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ("dmarc=pass; spf=fail; dkim=fail", AuthenticationVerdict.PASSED),
        ("dmarc=fail; spf=pass; dkim=pass", AuthenticationVerdict.FAILED),
        ("dmarc=none; spf=pass; dkim=fail", AuthenticationVerdict.PASSED),
        ("spf=softfail; dkim=none", AuthenticationVerdict.FAILED),
        ("spf=neutral; dkim=temperror", AuthenticationVerdict.UNKNOWN),
        ("dkim=fail; dkim=pass", AuthenticationVerdict.PASSED),
        ("dkim/2=pass; spf=fail", AuthenticationVerdict.FAILED),
        ("none", AuthenticationVerdict.UNKNOWN),
    ],
)
def test_dmarc_decides_and_else_any_pass(results: str, verdict: AuthenticationVerdict) -> None:
    assert verdict is authentication(parse(message(f"{OURS}; {results}")), OURS).verdict
