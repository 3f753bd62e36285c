"""RFC 8621 §4.2: what is asked of a message's body, by properties and flags; and the preview (§4.1.4)."""

from typing import Any

import pytest

from shared.message import (
    DEFAULT_BODY_PROPERTIES,
    DEFAULT_EMAIL_PROPERTIES,
    BadHeaderProperty,
    UnknownProperty,
    check_properties,
    email_json,
    parse,
    preview,
)
from tests.shared.message.mail import entity, multipart


@pytest.mark.statement("137")
def test_body_values_are_those_that_the_flags_ask_for() -> None:
    message = parse(
        multipart(
            "mixed",
            multipart("alternative", entity("text/plain", "A"), entity("text/html", "B"), boundary="i"),
            entity("text/csv", "C", "Content-Disposition: attachment"),
            entity("image/png", "D"),
        )
    )

    def fetched(**flags: bool) -> list[str]:
        values: Any = email_json(message, properties=["bodyValues"], **flags)["bodyValues"]  # type: ignore[arg-type]  # flags only
        return sorted(value["value"] for value in values.values())

    assert fetched() == []
    assert fetched(fetch_text=True) == ["A"]
    assert fetched(fetch_html=True) == ["B"]
    assert fetched(fetch_all=True) == ["A", "B", "C"]


@pytest.mark.statement("137")
def test_each_flag_gives_every_text_of_its_list_and_all_means_those_in_no_list_too() -> None:
    plain_only = parse(entity("text/plain", "A"))
    html_only = parse(entity("text/html", "B"))
    for message in (plain_only, html_only):
        for flag in ("fetch_text", "fetch_html"):
            values: Any = email_json(message, properties=["bodyValues"], **{flag: True})["bodyValues"]  # type: ignore[arg-type]  # flags only
            assert ["1"] == list(values)
    # The algorithm of RFC 8621 §4.1.4 puts the second text of this one into no list.
    octets = multipart("mixed", entity("text/plain", "A"), entity("text/html", "B"), boundary="i")
    lost = parse(multipart("alternative", octets))
    lists = ["textBody", "htmlBody", "attachments"]
    everything: Any = email_json(lost, properties=["bodyValues", *lists], fetch_all=True)
    assert {"1"} == {part["partId"] for name in lists for part in everything[name]}
    assert ["1", "2"] == list(everything["bodyValues"])


@pytest.mark.statement("126")
def test_the_default_properties_are_those_of_rfc_8621() -> None:
    assert (24, 10) == (len(DEFAULT_EMAIL_PROPERTIES), len(DEFAULT_BODY_PROPERTIES))
    check_properties(DEFAULT_EMAIL_PROPERTIES, DEFAULT_BODY_PROPERTIES)


@pytest.mark.statement("146")
def test_header_fields_are_body_properties_too_and_no_property_gives_empty_objects() -> None:
    message = parse(entity("text/plain", "A", "X-A: =?utf-8?Q?b?="))
    spelled = "header:x-a:asText"
    assert email_json(message, properties=["textBody"], body_properties=[spelled]) == {"textBody": [{spelled: "b"}]}
    assert email_json(message, properties=["textBody"], body_properties=[]) == {"textBody": [{}]}


@pytest.mark.parametrize(
    ("properties", "body_properties", "error"),
    [
        (["nothing"], [], UnknownProperty),
        ([], ["nothing"], UnknownProperty),
        (["subParts"], [], UnknownProperty),
        (["header:From:asDate"], [], BadHeaderProperty),
        ([], ["header:"], BadHeaderProperty),
    ],
)
@pytest.mark.statement("146")
def test_unknown_properties_are_refused(
    properties: list[str], body_properties: list[str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        check_properties(properties, body_properties)


@pytest.mark.statement("145")
def test_the_preview_says_something() -> None:
    html = (
        '<div style="display:none">&zwnj;&nbsp;&zwnj;</div><a href="https://a.test">View in browser</a>'
        "<p>The   van\ncomes at <b>nine</b>.</p>"
    )
    assert preview(parse(entity("text/html", html))) == "The van comes at nine."
    assert preview(parse(entity("application/pdf", "x"))) == ""
    # As long as it may be, white space collapsed to its end.
    assert [*["ab"] * 85, "a"] == preview(parse(entity("text/plain", "ab \t\r\n\u00a0" * 1_000))).split(" ")
    assert "x" * 256 == preview(parse(entity("text/plain", "x" * 300)))
    for message in (parse(entity("application/pdf", "x")), parse(entity("text/plain", " \r\n"))):
        assert {"preview": ""} == email_json(message, properties=["preview"])


def test_a_preview_skips_pictures_and_drawn_rules_unless_there_is_nothing_else() -> None:
    html = '<img alt="Logo"><p>News</p><hr><p>The van comes.</p>'
    assert preview(parse(entity("text/html", html))) == "News The van comes."
    assert preview(parse(entity("text/html", '<img alt="Logo">'))) == "[image: Logo]"


@pytest.mark.statement("146")
def test_each_instance_of_a_header_field_is_a_body_property_too() -> None:
    message = parse(entity("text/plain", "x", "X-A: 1", "x-a: 2"))
    asked = ["header:X-A", "header:X-A:asText:all", "header:X-B:all"]
    found = email_json(message, properties=["textBody"], body_properties=asked)
    assert [{"header:X-A": " 2", "header:X-A:asText:all": ["1", "2"], "header:X-B:all": []}] == found["textBody"]
