"""Names that an eye takes for those of somebody known here, and honest names that are only near them."""

from __future__ import annotations

import pytest

from change_executor.evidence.look_alikes import Acquaintances
from change_executor.evidence.reading import Reading
from change_executor.evidence.reading_message import read_message
from change_executor.evidence.run_child import read_in_child

KNOWN = [
    *("teahouse.example", "north-bank.example", "modern-mail.example", "wool.example", "hotmail.com"),
    *("mail.lindqvist.example", "lufthansa.co.uk", "www.parcel-service.example", "berlin22.example"),
]


@pytest.mark.parametrize(
    ("host", "known"),
    [
        # Letters that are drawn alike, in a name of any length.
        ("modem-mail.example", "modern-mail.example"),
        ("rnodern-mail.example", "modern-mail.example"),
        ("vvool.example", "wool.example"),
        ("w00l.example", "wool.example"),
        ("woo1.example", "wool.example"),
        ("teah0use.example", "teahouse.example"),
        ("orders.teah0use.example", "teahouse.example"),
        ("te\u0430house.example", "teahouse.example"),
        # A hyphen more or less.
        ("northbank.example", "north-bank.example"),
        ("tea-house.example", "teahouse.example"),
        ("parcelservice.example", "parcel-service.example"),
        # One letter put in, left out, replaced, changed about.
        ("teahousse.example", "teahouse.example"),
        ("teahose.example", "teahouse.example"),
        ("teahuose.example", "teahouse.example"),
        ("hotnail.com", "hotmail.com"),
        ("lindqvlst.example", "mail.lindqvist.example"),
        ("1ufthansa.co.uk", "lufthansa.co.uk"),
        ("lufhansa.co.uk", "lufthansa.co.uk"),
    ],
)
def test_what_looks_like_somebody_known_is_told_with_whom(host: str, known: str) -> None:
    assert known == Acquaintances(KNOWN).imitated_by(host)


@pytest.mark.parametrize(
    "host",
    [
        # Those who are known, and their own.
        *KNOWN,
        *("news.teahouse.example", "lindqvist.example", "parcel-service.example", "shop.lindqvist.example"),
        # Other top domains, other names, names with a word more.
        *("teahouse.test", "greenhouse.example", "teahouse-service.example", "my-teahouse.example", "lufthansa.org.uk"),
        # A short name has honest neighbours; so have a plural and a numbered sister.
        *("wood.example", "pool.example", "teahouses.example", "hotmail1.com", "berlin23.example", "berlin2.example"),
        # Two letters are two names.
        *("teahorse-x.example", "treehouse.example", "lighthouse.example", "southbank.example"),
        # A sister under the same owner's name.
        *("mail2.lindqvist.example", "malls.lindqvist.example"),
        *("", ".", "com", "co.uk", "[192.0.2.1]", "192.0.2.1", "\u0430", "-" * 300),
    ],
)
def test_an_honest_name_is_not_taken_for_another(host: str) -> None:
    assert Acquaintances(KNOWN).imitated_by(host) is None
    assert Acquaintances().imitated_by(host) is None


UTF8 = "Content-Type: text/plain; charset=utf-8\r\n"


def read(octets: bytes) -> Reading:
    return read_message(octets, cut=False, names=[], known_hosts=["teahouse.example", "<b>\u202e.example"])


def said(reading: Reading) -> list[tuple[str, str]]:
    return [(each.code, each.detail) for each in reading.warnings]


def test_the_look_alike_of_an_earlier_sender_is_said_with_where_it_stands_and_whom_it_imitates() -> None:
    mail = b"From: Tea <tea@teah0use.example>\r\nTo: us@shop.example\r\n\r\nSee https://tea-house.example/now\r\n"
    detail = (
        "teah0use.example, in the sender's address: can be taken for teahouse.example, "
        "tea-house.example, in a link: can be taken for teahouse.example"
    )
    assert [("look_alike_domain", detail)] == said(read(mail))
    assert [] == said(read_message(mail, cut=False, names=[]))
    assert read_in_child(mail, cut=False, names=[], known_hosts=KNOWN) == read_message(
        mail, cut=False, names=[], known_hosts=KNOWN
    )


def test_the_look_alike_of_the_recipients_or_the_senders_own_name_is_said() -> None:
    mail = b"From: a@sender.example\r\nTo: us@our-shop.example\r\nReply-To: b@ourshop.example\r\n\r\n"
    mail += b"Here: https://sencler.example/ and https://senders.example/ and https://www.sender.example/\r\n"
    detail = (
        "ourshop.example, in the address that answers go to: can be taken for our-shop.example, "
        "sencler.example, in a link: can be taken for sender.example"
    )
    assert [("look_alike_domain", detail), ("reply_to_differs", "b@ourshop.example")] == said(read(mail))


def test_which_letter_is_of_another_script_and_where_is_pointed_out() -> None:
    link = "https://p\u0430rcel-\u0455ervice.example/2207"
    mail = f"From: a@parcel-service.example\r\n{UTF8}\r\nFollow it: {link}\r\n".encode()
    where = "p[\u0430]rcel-[\u0455]ervice.example, in a link: "
    letters = "the letters in brackets are Cyrillic; among servers it is called xn--prcel-ervice-x9j29b.example"
    assert [("look_alike_domain", f"{where}can be taken for parcel-service.example; {letters}")] == said(read(mail))
    assert ["p\u0430rcel-\u0455ervice.example (xn--prcel-ervice-x9j29b.example)"] == read(mail).hosts
    other = mail.replace(b"a@parcel-service", b"a@shop")
    assert [("mixed_script_domain", where + letters)] == said(read(other))
    # The child can load no module once it is confined.
    assert read_in_child(mail, cut=False, names=[], known_hosts=[]) == read_message(mail, cut=False, names=[])


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("g\u03bf\u03bfgle.test", "g[\u03bf\u03bf]gle.test, in a link: the letters in brackets are Greek; "),
        # A Latin letter within a Cyrillic word is the strange one there.
        ("\u043c\u043ec\u043a\u0432\u0430.test", "\u043c\u043e[c]\u043a\u0432\u0430.test, in a link: the letters in"),
    ],
)
def test_of_a_word_the_letters_of_the_rarer_script_are_the_strange_ones(host: str, shown: str) -> None:
    mail = f"From: a@b.example\r\n{UTF8}\r\nhttps://{host}/\r\n".encode()
    assert shown in dict(said(read(mail)))["mixed_script_domain"]
