"""SearchSnippet/get: what is marked, and that it is what Email/query found (RFC 8621 §5)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_reader.query import parse_snippets, search_snippets
from agent_reader.query.snippets import _tokens, marked_preview, marked_whole
from agent_reader.store.fold import fold
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored

TEXTS = {
    "german": letter("Grüße aus Köln & <Bonn>.\r\nDie LIEFERUNG kommt.", subject="Grüße aus Düsseldorf"),
    "japanese": letter("東京都の会議室で会議。", subject="会議のお知らせ"),
    "invoice": letter("Please pay invoice 2026-0042 now, then invoice 7.", subject="Invoice"),
    "html": letter(
        "<style>.invoiced{}</style><p title='On pointing'>Visible <b>words</b> of ２０２６</p>",
        subject="News",
        content_type="text/html; charset=utf-8",
    ),
    "both": letter(
        "--b\r\nContent-Type: text/plain\r\n\r\nplainword only here, and enough of it to be a text of its own.\r\n"
        "--b\r\nContent-Type: text/html\r\n\r\n<p>richword only here</p>\r\n--b--",
        content_type="multipart/alternative; boundary=b",
    ),
    "headline": letter("Nothing.", subject="needle & " + "word " * 80 + "end"),
    "long": letter("filler " * 200 + "needle " + "after " * 200),
}
IDS = {name: id_of(octets) for name, octets in TEXTS.items()}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    with mirrored(tmp_path_factory.mktemp("store")) as account:
        account.begin("INBOX")
        account.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate(TEXTS.values(), 1)))
        yield account


def _snippet(account: Mirrored, name: str, asked: JSON) -> tuple[JSON, JSON]:
    with account.store.snapshot(ACCOUNT) as snapshot:
        found = search_snippets(snapshot, parse_snippets({"filter": asked, "emailIds": [IDS[name]]}))
    (snippet,) = found.list
    assert IDS[name] == snippet["emailId"]
    return snippet["subject"], snippet["preview"]


@pytest.mark.parametrize(
    ("name", "asked", "subject", "preview"),
    [
        (
            "german",
            {"text": "grusse"},
            "<mark>Grüße</mark> aus Düsseldorf",
            "<mark>Grüße</mark> aus Köln &amp; &lt;Bonn&gt;. Die LIEFERUNG kommt.",
        ),
        ("german", {"subject": "aus"}, "Grüße <mark>aus</mark> Düsseldorf", None),
        ("german", {"body": "bonn"}, None, "Grüße aus Köln &amp; &lt;<mark>Bonn</mark>&gt;. Die LIEFERUNG kommt."),
        (
            "german",
            {"body": '"bonn die"'},
            None,
            "Grüße aus Köln &amp; &lt;<mark>Bonn&gt;. Die</mark> LIEFERUNG kommt.",
        ),
        (
            "german",
            {"body": "kommt lieferung"},
            None,
            "Grüße aus Köln &amp; &lt;Bonn&gt;. Die <mark>LIEFERUNG</mark> <mark>kommt</mark>.",
        ),
        ("german", {"body": '"kommt lieferung"'}, None, None),
        ("german", {"from": "ann"}, None, None),
        ("german", {}, None, None),
        ("german", None, None, None),
        (
            "japanese",
            {"text": "会議"},
            "<mark>会議</mark>のお知らせ",
            "東京都の<mark>会議</mark>室で<mark>会議</mark>。",
        ),
        ("japanese", {"text": "京都"}, None, "東<mark>京都</mark>の会議室で会議。"),
        (
            "invoice",
            {"text": "invoice 0042"},
            "<mark>Invoice</mark>",
            "Please pay <mark>invoice</mark> 2026-<mark>0042</mark> now, then <mark>invoice</mark> 7.",
        ),
        (
            "invoice",
            {"text": '"invoice 2026-0042"'},
            None,
            "Please pay <mark>invoice 2026-0042</mark> now, then invoice 7.",
        ),
        ("html", {"text": "invoiced"}, None, None),
        ("html", {"body": "words 2026"}, None, "Visible <mark>words</mark> of <mark>２０２６</mark>"),
        ("html", {"body": "pointing"}, None, "On <mark>pointing</mark>"),
        ("both", {"body": "richword"}, None, "<mark>richword</mark> only here"),
        (
            "invoice",
            {
                "operator": "AND",
                "conditions": [{"body": "pay"}, {"operator": "NOT", "conditions": [{"body": "now"}, {"text": "then"}]}],
            },
            None,
            "Please <mark>pay</mark> invoice 2026-0042 now, then invoice 7.",
        ),
        (
            "invoice",
            {"operator": "OR", "conditions": [{"body": "pay"}, {"body": "now"}, {"hasKeyword": "$seen"}]},
            None,
            "Please <mark>pay</mark> invoice 2026-0042 <mark>now</mark>, then invoice 7.",
        ),
    ],
)
@pytest.mark.statement("172", "174")
def test_what_was_looked_for_is_marked_and_nothing_else(
    account: Mirrored, name: str, asked: JSON, subject: JSON, preview: JSON
) -> None:
    assert (subject, preview) == _snippet(account, name, asked)


@pytest.mark.statement("174")
def test_what_email_query_finds_by_body_or_subject_has_a_mark(account: Mirrored) -> None:
    words = {word for octets in TEXTS.values() for word in re.findall(r"\w+", octets.decode().split("\r\n\r\n", 1)[1])}
    asked = 0
    for word in sorted(words):
        for field in ("body", "subject"):
            for email_id in account.found(**{field: word}):
                name = next(name for name, each in IDS.items() if each == email_id)
                assert _snippet(account, name, {field: word})[field == "body"], (word, name)
                asked += 1
    assert asked > 40


@pytest.mark.statement("172")
def test_a_preview_begins_before_the_match_and_ends_in_time(account: Mirrored) -> None:
    _, preview = _snippet(account, "long", {"text": "needle"})
    assert isinstance(preview, str)
    assert preview.startswith("filler filler")
    assert "<mark>needle</mark> after" in preview
    assert 200 < len(preview.encode()) <= 255


@pytest.mark.parametrize("before", ["&", "<", "\N{PARTY POPPER}", "東"])
@pytest.mark.statement("172")
def test_what_takes_many_octets_before_the_match_leaves_room_for_it(before: str) -> None:
    preview = marked_preview(f"{before * 300}needle " + "after " * 50, [["needle"]])
    assert preview is not None
    assert "<mark>needle</mark> after" in preview


@pytest.mark.parametrize("after", ["東", "é", "&", "<", "\N{PARTY POPPER}", "a"])
@pytest.mark.statement("172")
def test_a_preview_is_as_long_as_it_may_be_and_no_longer(after: str) -> None:
    preview = marked_preview("needle " + after * 300, [["needle"]])
    assert preview is not None
    assert 250 < len(preview.encode()) <= 255
    # What fits to the octet stays whole.
    rest = "a" * (255 - len("<mark>needle</mark> "))
    assert f"<mark>needle</mark> {rest}" == marked_preview(f"needle {rest}", [["needle"]])
    assert f"<mark>needle</mark> {rest}" == marked_preview(f"needle {rest}a", [["needle"]])


@pytest.mark.statement("172")
def test_a_subject_is_whole_however_long_it_is(account: Mirrored) -> None:
    marked = "<mark>needle</mark> &amp; " + "word " * 80 + "end"
    assert (marked, None) == _snippet(account, "headline", {"text": "needle"})


@pytest.mark.statement("174")
def test_matches_that_touch_or_overlap_are_one_and_each_of_the_others_has_its_own() -> None:
    for text, phrases, expected in (
        ("東京都", ["東", "京"], "<mark>東京</mark>都"),
        ("a b c d", ["a b", "b c"], "<mark>a b c</mark> d"),
        ("a b c d", ["a b c", "b"], "<mark>a b c</mark> d"),
        ("a a a b", ["a a"], "<mark>a a a</mark> b"),
        ("needles needle", ["needle"], "needles <mark>needle</mark>"),
        ("needless-needle need", ["needle need"], "needless-<mark>needle need</mark>"),
        ("b, a, b", ["a", "b"], "<mark>b</mark>, <mark>a</mark>, <mark>b</mark>"),
    ):
        assert expected == marked_whole(text, [phrase.split() for phrase in phrases])


@pytest.mark.statement("173")
def test_unknown_ids_are_told_and_each_comes_back_once_in_the_order_asked_for(account: Mirrored) -> None:
    names = sorted(IDS, key=IDS.__getitem__, reverse=True)
    ids = [IDS[names[0]], "Mnone", *(IDS[name] for name in names), "?", "Mnone"]
    with account.store.snapshot(ACCOUNT) as snapshot:
        found = search_snippets(snapshot, parse_snippets({"emailIds": ids}))
    assert [IDS[name] for name in names] == [each["emailId"] for each in found.list]
    assert ("Mnone", "?") == found.not_found


@given(st.text(max_size=200))
def test_the_words_of_a_text_are_those_of_the_index_each_in_its_place(text: str) -> None:
    tokens = list(_tokens(text))
    assert fold(text).split() == [token.word for token in tokens]
    for token in tokens:
        assert 0 <= token.start < token.end <= len(text)


@given(st.text(max_size=600), st.lists(st.lists(st.sampled_from("ab<&>東é"), min_size=1, max_size=3), min_size=1))
@pytest.mark.statement("172")
def test_a_snippet_is_short_whole_and_escaped_whatever_the_text(text: str, phrases: list[list[str]]) -> None:
    for marked in (marked_preview(text, phrases), marked_whole(text, phrases)):
        if marked is None:
            continue
        assert marked.count("<mark>") == marked.count("</mark>") > 0
        plain = marked.replace("<mark>", "").replace("</mark>", "")
        assert "<" not in plain
        assert ">" not in plain
        assert all(re.match(r"&(amp|lt|gt);", plain[found.start() :]) for found in re.finditer("&", plain))
    preview = marked_preview(text, phrases)
    assert preview is None or len(preview.encode()) <= 255
