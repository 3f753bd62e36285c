"""What nearly every sender writes needs no scanner; the scanner, made to look by a comment, says the same."""

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.message.addresses import parse_groups
from shared.message.parameters import parse_parameterised

ADDRESS_PIECES: Final = [
    "a", "b.c", "@", "a@b.test", "<a@b.test>", "<", ">", "T:", " ", "  ", "\t", ",", ", ", ";", ":", '"', '"q, r" ',
    "x y", "J. Q. ", "=?utf-8?q?=E9?=", "=", "?", "[1]", "\\", "é", "\n",
]  # fmt: skip
PARAMETER_PIECES: Final = [
    "text/plain", "; ", ";", "a=b", "name=", 'name="b c"', "boundary=----=_P", "=", '"', "x", "*", "*0*", " ", "\t",
    "[", "]", "\\", "é", "/", "charset=utf-8",
]  # fmt: skip


def test_the_usual_spellings() -> None:
    (group,) = parse_groups('A B <a@b.test>, c@d.test ,"E, F" <e@f.test>')
    assert [("A B", "a@b.test"), (None, "c@d.test"), ("E, F", "e@f.test")] == [
        (address.name, address.email) for address in group.addresses
    ]
    team, loose = parse_groups("Team: a@b.test, c@d.test;, e@f.test ")
    assert [("Team", 2), (None, 1)] == [(group.name, len(group.addresses)) for group in (team, loose)]
    read = parse_parameterised('Text/HTML; Charset=UTF-8; boundary="a b"; boundary=c;')
    assert ("text/html", {"charset": "UTF-8", "boundary": "a b"}) == (read.value, read.parameters)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(ADDRESS_PIECES), max_size=9).map("".join))
def test_addresses_are_those_of_the_scanner(text: str) -> None:
    assert parse_groups(text + " ()") == parse_groups(text)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PARAMETER_PIECES), max_size=9).map("".join))
def test_parameters_are_those_of_the_scanner(text: str) -> None:
    assert parse_parameterised(text + " ()") == parse_parameterised(text)
