"""Email/query: filters, orders and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agent_reader.query import QueryRefused, email_query, parse_email_query
from agent_reader.query.arguments import MAX_INT
from agent_reader.query.filters import MAX_DEPTH
from shared.message import JSON
from tests.agent_reader.mirrored import (
    ACCOUNT,
    Mirrored,
    fetched,
    id_of,
    letter,
    mirrored,
    with_attachment,
)

GERMAN = letter("Die Lieferung kommt am Dienstag nach Köln.", subject="Grüße aus Düsseldorf", sender="Jürgen <j@x.de>")
JAPANESE = letter("東京都庁で会いましょう。", subject="会議のお知らせ", sender="山田 <yamada@example.jp>")
INVOICE = with_attachment("Please pay invoice 2026-0042 now.", subject="Invoice")
HTML = letter(
    "<html><head><title>secrettitle</title><style>.stylish{}</style></head><body><p title='titleword'>Visible words</p>"
    "<div style='display:none' title='hiddentitle'>hiddenwords</div><script>scripted()</script><!-- commented -->"
    "<img alt='altword' src='http://tracker.example/pixel'><p>Follow <a href='https://target.example/?go'>this</a> to "
    "read &lt;https://written.example&gt;</p></body></html>",
    subject="Newsletter",
    sender='"Shop, News" <news@shop.example>',
    content_type="text/html; charset=utf-8",
)
BOTH = letter(
    "--b\r\nContent-Type: text/plain\r\n\r\nplainword only here, and enough of it to be a text of its own "
    "<https://plain.example>.\r\n"
    "--b\r\nContent-Type: text/html\r\n\r\n<p title='richtitle'><a href='//targets.example'>richword</a> only here"
    "</p>\r\n--b--",
    subject="Two ways",
    to="carol@example.net",
    headers={"Cc": '"Kitchen staff": Dan <dan@example.net>;', "CC": "frank@x.org", "Bcc": "eve@example.net"},
    content_type="multipart/alternative; boundary=b",
)
LETTERS = (GERMAN, JAPANESE, INVOICE, HTML, BOTH)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    with mirrored(tmp_path_factory.mktemp("store")) as account:
        account.begin("INBOX", "Archive", "Trash")
        account.add(
            "INBOX",
            fetched(1, GERMAN, flags=["\\Seen"]),
            fetched(2, JAPANESE, flags=["\\Flagged", "$Label1"]),
            fetched(3, INVOICE),
        )
        account.add("Archive", fetched(4, HTML), fetched(5, BOTH, flags=["\\Seen"]), fetched(6, INVOICE))
        account.add("Trash", fetched(7, GERMAN))
        yield account


@pytest.mark.parametrize(
    ("condition", "letters"),
    [
        ({"text": "grüße"}, [GERMAN]),
        ({"text": "GRUSSE"}, [GERMAN]),
        ({"text": "gru\u0308ße düsseldorf köln"}, [GERMAN]),
        ({"text": "dienstag lieferung"}, [GERMAN]),
        ({"text": '"lieferung kommt"'}, [GERMAN]),
        ({"text": "'lieferung kommt'"}, [GERMAN]),
        ({"text": '"kommt lieferung"'}, []),
        ({"text": "lieferung nirgends"}, []),
        ({"text": "jürgen"}, [GERMAN]),
        ({"text": "j@x.de"}, [GERMAN]),
        ({"text": "東京"}, [JAPANESE]),
        ({"text": "京都"}, [JAPANESE]),
        ({"text": "東都"}, []),
        ({"subject": "会議"}, [JAPANESE]),
        ({"subject": "東京"}, []),
        ({"body": "2026-0042"}, [INVOICE]),
        ({"body": "0042"}, [INVOICE]),
        ({"body": "２０２６－００４２"}, [INVOICE]),
        ({"body": "Ｉｎｖｏｉｃｅ"}, [INVOICE]),
        ({"body": "０２６"}, []),
        ({"from": "shop.example"}, [HTML]),
        ({"from": "x.de"}, [GERMAN]),
        ({"cc": "example.net"}, [BOTH]),
        ({"body": "invoice"}, [INVOICE]),
        ({"subject": "grüße", "body": "köln"}, [GERMAN]),
        ({"subject": "grüße", "body": "düsseldorf"}, []),
        ({"text": "visible"}, [HTML]),
        ({"text": "altword"}, [HTML]),
        ({"text": "titleword"}, [HTML]),
        ({"text": "richtitle"}, [BOTH]),
        ({"text": "hiddenwords"}, []),
        ({"text": "hiddentitle"}, []),
        ({"text": "secrettitle"}, []),
        ({"text": "stylish"}, []),
        ({"text": "scripted"}, []),
        ({"text": "commented"}, []),
        ({"text": "div"}, []),
        ({"text": "img"}, []),
        ({"text": "tracker"}, []),
        # Where a link leads is an attribute, and parts no phrase; what somebody wrote is found.
        ({"text": "'follow this to read'"}, [HTML]),
        ({"text": "target.example"}, []),
        ({"text": "go"}, []),
        ({"text": "image"}, []),
        ({"text": "written.example"}, [HTML]),
        ({"text": "targets.example"}, []),
        ({"text": "'richword only'"}, [BOTH]),
        ({"text": "plain.example"}, [BOTH]),
        ({"text": "plainword"}, [BOTH]),
        ({"text": "'of its own'"}, [BOTH]),
        # Nobody wrote one after the other.
        ({"text": "'own richword'"}, []),
        ({"text": "'here richtitle'"}, []),
        ({"text": "richword"}, [BOTH]),
        ({"from": "shop, news"}, [HTML]),
        ({"from": "news@shop.example"}, [HTML]),
        ({"from": "carol"}, []),
        ({"to": "carol"}, [BOTH]),
        ({"cc": "dan"}, [BOTH]),
        ({"cc": "'kitchen staff'"}, [BOTH]),
        ({"text": "kitchen"}, [BOTH]),
        # In another field of that name.
        ({"cc": "frank"}, [BOTH]),
        ({"bcc": "eve"}, [BOTH]),
        ({"text": "eve dan"}, [BOTH]),
        ({"hasAttachment": True}, [INVOICE]),
        ({"hasAttachment": False}, [GERMAN, JAPANESE, HTML, BOTH]),
        ({"hasKeyword": "$seen"}, [GERMAN, BOTH]),
        ({"hasKeyword": "$LABEL1"}, [JAPANESE]),
        ({"notKeyword": "$seen"}, [JAPANESE, INVOICE, HTML]),
        ({"hasKeyword": "$recent"}, []),
        ({"minSize": len(HTML)}, [each for each in LETTERS if len(each) >= len(HTML)]),
        ({"maxSize": len(HTML)}, [each for each in LETTERS if len(each) < len(HTML)]),
        ({"after": "2026-01-01T12:02:00Z"}, [JAPANESE, INVOICE, HTML, BOTH]),
        ({"before": "2026-01-01T12:02:00Z"}, [GERMAN]),
        ({"after": "2026-01-01T12:02:00.5Z"}, [INVOICE, HTML, BOTH]),
        ({"before": "2026-01-01T12:02:00.5Z"}, [GERMAN, JAPANESE]),
        ({"after": "2026-01-01T12:02:00Z", "before": "2026-01-01T12:04:00Z", "text": "invoice"}, [INVOICE]),
        ({"after": "2026-01-01T12:04:00Z", "text": "invoice"}, []),
        ({"text": "invoice", "minSize": 10, "hasAttachment": True, "notKeyword": "$seen"}, [INVOICE]),
        ({"text": "  "}, list(LETTERS)),
        ({}, list(LETTERS)),
        (None, list(LETTERS)),
    ],
)
@pytest.mark.statement("77", "153", "154", "156", "157", "158", "159", "160", "162", "163")
def test_a_condition_finds_what_it_says(
    account: Mirrored, condition: Mapping[str, JSON] | None, letters: list[bytes]
) -> None:
    result = account.query(filter=condition, calculateTotal=True)
    assert set(result.ids) == set(map(id_of, letters))
    assert result.total == len(letters)


@pytest.mark.statement("77")
def test_a_filter_that_is_missing_means_everything(account: Mirrored) -> None:
    result = account.query(calculateTotal=True)
    assert (set(map(id_of, LETTERS)), len(LETTERS)) == (set(result.ids), result.total)


@pytest.mark.statement("154")
def test_a_keyword_is_of_the_characters_that_imap_lets_it_be_of(account: Mirrored) -> None:
    """RFC 8621 §4.1.1."""
    visible = set(map(chr, range(0x21, 0x7F)))
    legal = visible - set('(){]%*"\\')
    for character in sorted(visible | {" ", "\x7f", "\t", "é"}):
        if character in legal:
            assert () == account.query(filter={"hasKeyword": f"x{character}"}).ids
        else:
            with pytest.raises(QueryRefused, match="invalidArguments"):
                account.query(filter={"hasKeyword": f"x{character}"})
    assert () == account.query(filter={"hasKeyword": "x" * 255}).ids
    with pytest.raises(QueryRefused, match="invalidArguments"):
        account.query(filter={"hasKeyword": "x" * 256})


@pytest.mark.statement("156")
def test_has_attachment_finds_those_whose_property_says_so(account: Mirrored) -> None:
    found = {wanted: set(account.query(filter={"hasAttachment": wanted}).ids) for wanted in (True, False)}
    said = {id_of(each): account.email(id_of(each), "hasAttachment")["hasAttachment"] for each in LETTERS}
    assert found == {wanted: {each for each, value in said.items() if value is wanted} for wanted in (True, False)}
    assert {True, False} == set(said.values())


@pytest.mark.statement("152")
def test_a_mailbox_and_other_mailboxes(account: Mirrored) -> None:
    inbox, archive, trash = map(account.mailbox_id, ("INBOX", "Archive", "Trash"))
    assert account.found(inMailbox=inbox) == set(map(id_of, (GERMAN, JAPANESE, INVOICE)))
    assert account.found(inMailbox=inbox, text="invoice") == {id_of(INVOICE)}
    assert account.found(inMailbox=trash, text="invoice") == set()
    assert account.found(inMailbox=inbox, minSize=len(INVOICE)) == {id_of(INVOICE)}
    assert account.found(inMailboxOtherThan=[inbox]) == set(map(id_of, (GERMAN, INVOICE, HTML, BOTH)))
    assert account.found(inMailboxOtherThan=[inbox, trash]) == set(map(id_of, (INVOICE, HTML, BOTH)))
    assert account.found(inMailboxOtherThan=[inbox, archive, trash]) == set()
    assert account.found(inMailboxOtherThan=[]) == set(map(id_of, LETTERS))


def _operator(operator: str, *conditions: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"operator": operator, "conditions": list(conditions)}


@pytest.mark.parametrize(
    ("asked", "letters"),
    [
        (_operator("AND"), list(LETTERS)),
        (_operator("NOT"), list(LETTERS)),
        (_operator("OR"), []),
        (_operator("AND", {}, {}), list(LETTERS)),
        (_operator("NOT", {}), []),
        (_operator("OR", {"text": "grüße"}, {"text": "invoice"}), [GERMAN, INVOICE]),
        (_operator("NOT", {"text": "grüße"}, {"text": "invoice"}), [JAPANESE, HTML, BOTH]),
        (_operator("NOT", {"text": "grüße"}, {"minSize": 0}), []),
        (_operator("OR", {"text": "grüße"}, {"after": "2026-01-01T12:05:00Z"}), [GERMAN, BOTH]),
        (_operator("AND", _operator("NOT", {"hasKeyword": "$seen"}), {"hasAttachment": False}), [JAPANESE, HTML]),
        (
            _operator("NOT", _operator("AND", {"hasKeyword": "$seen"}, {"maxSize": 10**6}), {"text": "visible"}),
            [JAPANESE, INVOICE],
        ),
        (_operator("OR", _operator("NOT", {"text": "invoice"}), {"hasAttachment": True}), list(LETTERS)),
        (_operator("AND", {"text": "invoice"}, _operator("OR")), []),
        (_operator("NOT", _operator("NOT", {"text": "invoice"})), [INVOICE]),
    ],
)
@pytest.mark.statement("78")
def test_operators_nest(account: Mirrored, asked: JSON, letters: list[bytes]) -> None:
    result = account.query(filter=asked, calculateTotal=True)
    assert set(result.ids) == set(map(id_of, letters))
    assert result.total == len(letters)


@pytest.mark.parametrize(
    "text",
    [
        "invoice AND nowhere",
        "invoice OR grüße",
        "invoice NOT pay",
        "invo*",
        "NEAR(invoice pay)",
        "NEAR(invoice pay, 2)",
        "subject_words:invoice",
        "tokens : invoice",
        "{body_words} : invoice",
        "^invoice nowhere",
        '"invoice" + "grüße"',
        "invoice) OR (grüße",
        '"; DROP TABLE search; --',
        '\\" OR \\"',
        "invoice\x00nowhere",
        "\ue000e",
        "\ue000m1",
    ],
)
@pytest.mark.statement("160")
def test_query_syntax_in_a_text_is_words_like_any_other(account: Mirrored, text: str) -> None:
    """None of these words stands in one message together, so as data they find nothing."""
    assert account.query(filter={"text": text}, calculateTotal=True).total == 0


@pytest.mark.parametrize(
    "text", ['"invoice', 'invoice"', "'invoice", "invoice'", '"invoice" please', "(invoice)", "invoice:"]
)
@pytest.mark.statement("159")
def test_unbalanced_quotes_and_punctuation_around_a_word_do_not_hide_it(account: Mirrored, text: str) -> None:
    assert account.found(text=text) == {id_of(INVOICE)}


@pytest.mark.statement("159")
def test_a_quote_is_escaped_within_a_phrase(account: Mirrored) -> None:
    assert account.found(text='"pay \\"invoice"') == {id_of(INVOICE)}
    assert account.found(text="'please pay' \"invoice 2026-0042\" now") == {id_of(INVOICE)}


@pytest.mark.parametrize(
    ("asked", "error", "named"),
    [
        ({"filter": {"allInThreadHaveKeyword": "no keyword"}}, "invalidArguments", "allInThreadHaveKeyword"),
        ({"filter": {"someInThreadHaveKeyword": 1}}, "invalidArguments", "someInThreadHaveKeyword"),
        ({"filter": {"noneInThreadHaveKeyword": ""}}, "invalidArguments", "noneInThreadHaveKeyword"),
        ({"filter": {"header": []}}, "invalidArguments", "header"),
        ({"filter": {"header": ["a", "b", "c"]}}, "invalidArguments", "header"),
        ({"filter": {"header": "Subject"}}, "invalidArguments", "header"),
        ({"filter": {"header": ["Subject", 1]}}, "invalidArguments", "header"),
        ({"filter": {"header": ["Sub ject"]}}, "invalidArguments", "header"),
        ({"filter": {"header": ["Subject:"]}}, "invalidArguments", "header"),
        ({"filter": {"header": ["Subject", "x" * 1001]}}, "invalidArguments", "header"),
        ({"filter": {"shoeSize": 43}}, "unsupportedFilter", "filter"),
        ({"filter": []}, "invalidArguments", "filter"),
        ({"filter": {"operator": "XOR", "conditions": []}}, "invalidArguments", "filter"),
        ({"filter": {"operator": "AND"}}, "invalidArguments", "filter"),
        ({"filter": {"operator": "AND", "conditions": {}}}, "invalidArguments", "filter"),
        ({"filter": {"operator": "AND", "conditions": [], "text": "x"}}, "invalidArguments", "filter"),
        ({"filter": {"operator": "AND", "conditions": [None]}}, "invalidArguments", "filter"),
        ({"filter": {"inMailbox": None}}, "invalidArguments", "inMailbox"),
        ({"filter": {"inMailbox": "Fnone"}}, "invalidArguments", "filter"),
        ({"filter": {"inMailbox": "no id"}}, "invalidArguments", "inMailbox"),
        ({"filter": {"inMailboxOtherThan": "Fnone"}}, "invalidArguments", "inMailboxOtherThan"),
        ({"filter": {"text": 7}}, "invalidArguments", "text"),
        ({"filter": {"text": None}}, "invalidArguments", "text"),
        ({"filter": {"text": "x" * 1001}}, "invalidArguments", "text"),
        ({"filter": {"text": " ".join(map(str, range(51)))}}, "invalidArguments", "text"),
        ({"filter": {"text": "--- ?!"}}, "unsupportedFilter", "text"),
        ({"filter": {"before": "2026-6-1"}}, "invalidArguments", "before"),
        ({"filter": {"before": "2026-02-30T00:00:00Z"}}, "invalidArguments", "before"),
        ({"filter": {"after": "2026-01-01T00:00:00+01:00"}}, "invalidArguments", "after"),
        ({"filter": {"after": "2026-01-01"}}, "invalidArguments", "after"),
        ({"filter": {"minSize": -1}}, "invalidArguments", "minSize"),
        ({"filter": {"maxSize": 1.5}}, "invalidArguments", "maxSize"),
        ({"filter": {"maxSize": -1}}, "invalidArguments", "maxSize"),
        ({"filter": {"minSize": True}}, "invalidArguments", "minSize"),
        ({"filter": {"hasAttachment": 1}}, "invalidArguments", "hasAttachment"),
        ({"filter": {"hasKeyword": "no keyword"}}, "invalidArguments", "hasKeyword"),
        ({"filter": {"notKeyword": ""}}, "invalidArguments", "notKeyword"),
        ({"sort": [{"property": "hasKeyword"}]}, "invalidArguments", "sort"),
        ({"sort": [{"property": "hasKeyword", "keyword": "no keyword"}]}, "invalidArguments", "sort"),
        ({"sort": [{"property": "size", "keyword": "$seen"}]}, "invalidArguments", "sort"),
        ({"sort": [{"property": "shoeSize"}]}, "unsupportedSort", "sort"),
        ({"sort": [{"property": "subject", "collation": "i;octet"}]}, "unsupportedSort", "sort"),
        ({"sort": [{"isAscending": True}]}, "invalidArguments", "sort"),
        ({"sort": [{"property": "size", "isAscending": "yes"}]}, "invalidArguments", "sort"),
        ({"sort": [{"property": "size", "order": "up"}]}, "invalidArguments", "sort"),
        ({"sort": {"property": "size"}}, "invalidArguments", "sort"),
        ({"sort": [{"property": "size"}] * 10}, "unsupportedSort", "sort"),
        ({"limit": -1}, "invalidArguments", "limit"),
        ({"limit": "10"}, "invalidArguments", "limit"),
        ({"position": 2**53}, "invalidArguments", "position"),
        ({"position": None}, "invalidArguments", "position"),
        ({"offset": 1}, "invalidArguments", "offset"),
        ({"anchor": "Mnone"}, "anchorNotFound", "anchor"),
        ({"anchor": 3}, "invalidArguments", "anchor"),
        ({"calculateTotal": "yes"}, "invalidArguments", "calculateTotal"),
        ({"collapseThreads": None}, "invalidArguments", "collapseThreads"),
    ],
)
@pytest.mark.statement("79", "80", "81", "151", "153", "154", "161", "165")
def test_what_cannot_be_answered_is_refused_and_named(
    account: Mirrored, asked: dict[str, Any], error: str, named: str
) -> None:
    with pytest.raises(QueryRefused) as refused:
        account.query(**asked)
    assert (refused.value.type, refused.value.arguments) == (error, (named,))
    assert refused.value.description


@pytest.mark.statement("78")
def test_nesting_has_an_end_and_what_is_within_is_answered(account: Mirrored) -> None:
    nested: dict[str, JSON] = {"text": "invoice"}
    for _ in range(MAX_DEPTH - 1):
        nested = _operator("AND", nested)
    assert account.query(filter=nested).ids == (id_of(INVOICE),)
    nots: dict[str, JSON] = {"text": "invoice"}
    for _ in range(MAX_DEPTH - 2):
        nots = _operator("NOT", nots)
    assert account.query(filter=nots).ids == (id_of(INVOICE),)
    with pytest.raises(QueryRefused) as refused:
        account.query(filter=_operator("AND", nested))
    assert refused.value.type == "unsupportedFilter"
    with pytest.raises(QueryRefused):
        account.query(filter=_operator("OR", *[{"text": "x"}] * 200))
    assert account.query(filter=_operator("OR", *[{"text": f"x{number}"} for number in range(199)])).ids == ()
    with pytest.raises(QueryRefused, match="200 words"):
        account.query(filter=_operator("OR", *[{"text": "a b c d e"} for _ in range(41)]))
    twice: dict[str, JSON] = {"text": "invoice", "minSize": 1}
    assert account.query(filter=_operator("AND", *[twice] * 100)).ids == (id_of(INVOICE),)


def test_a_phrase_of_a_thousand_characters_is_searched_for(account: Mirrored) -> None:
    assert account.query(filter={"text": "東" * 1000}).ids == ()


@pytest.mark.statement("71", "72", "73", "74", "75", "76")
def test_positions_anchors_and_limits(account: Mirrored) -> None:
    whole = account.query().ids
    assert len(whole) == 5
    assert account.query().limit == 500
    assert account.query().total is None
    assert account.query(limit=2).limit is None
    # To find the end they are counted, and nobody has asked how many there are.
    assert account.query(position=-2).total is None
    assert account.query(limit=10**6).limit == 500
    cases: list[tuple[dict[str, JSON], int, tuple[str, ...]]] = [
        ({"position": 1, "limit": 2}, 1, whole[1:3]),
        ({"position": -2}, 3, whole[3:]),
        ({"position": -9}, 0, whole),
        ({"position": 5}, 5, ()),
        ({"position": 99}, 99, ()),
        ({"limit": 0}, 0, ()),
        ({"anchor": whole[2]}, 2, whole[2:]),
        ({"anchor": whole[2], "anchorOffset": -1, "limit": 2}, 1, whole[1:3]),
        ({"anchor": whole[2], "anchorOffset": -9}, 0, whole),
        ({"anchor": whole[2], "anchorOffset": 9}, 11, ()),
        ({"anchor": whole[2], "anchorOffset": MAX_INT}, MAX_INT, ()),
        ({"anchor": whole[2], "position": -1}, 2, whole[2:]),
        ({"anchorOffset": 3}, 0, whole),
    ]
    for asked, position, expected in cases:
        result = account.query(**asked, calculateTotal=True)
        assert (result.position, result.ids, result.total) == (position, expected, 5), asked
    with pytest.raises(QueryRefused, match="anchorNotFound"):
        account.query(filter={"text": "invoice"}, anchor=id_of(GERMAN))


@pytest.mark.statement("76")
def test_a_limit_of_the_server_is_kept_and_told(account: Mirrored) -> None:
    with account.store.snapshot(ACCOUNT) as snapshot:
        result = email_query(snapshot, parse_email_query({"limit": 4}), max_limit=3)
    assert (len(result.ids), result.limit) == (3, 3)
