"""What a server's answers say, however they are spelled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imapclient.datetime_util import parse_to_datetime
from imapclient.exceptions import ProtocolError

from agent_reader.imap import answers
from agent_reader.imap.uid_ranges import UidRanges
from agent_reader.imap.values import MailboxStatus, MessageState

if TYPE_CHECKING:
    from agent_reader.imap.answers import Record


def lines(*records: Record) -> list[answers.ListLine]:
    return list(answers.list_lines(records))


@pytest.mark.statement("89")
def test_a_list_line_gives_name_delimiter_and_attributes_in_one_spelling() -> None:
    (line,) = lines(b'(\\NOSELECT \\hasChildren \\X-Own) "/" "B&APw-cher &- L&APY-hne"')
    assert (
        answers.ListLine(
            "Bücher & Löhne", "B&APw-cher &- L&APY-hne", "/", frozenset({"\\Noselect", "\\HasChildren", "\\X-Own"})
        )
        == line
    )


@pytest.mark.parametrize(
    ("record", "name", "delimiter"),
    [
        (b'() "/" INBOX', "INBOX", "/"),
        (b'() "/" inbox', "INBOX", "/"),
        (b"() NIL Archive", "Archive", None),
        (b'() "." 2024', "2024", "."),
        (b'() "/" "007"', "007", "/"),
        (b'() "/" NIL', "NIL", "/"),
        (b'() "\\\\" "a\\\\b\\"c"', 'a\\b"c', "\\"),
        (b'() "/" "R&D"', "R&D", "/"),
        (b'(\\Sent) "/" Sent ("OLDNAME" ("Old"))', "Sent", "/"),
    ],
)
def test_odd_mailbox_names_are_names(record: bytes, name: str, delimiter: str | None) -> None:
    (line,) = lines(record)
    assert (name, delimiter) == (line.name, line.delimiter)


def test_a_name_that_is_a_literal_is_put_together_again() -> None:
    found = lines((b'(\\Sent) "/" {4}', b"Sent"), b"", b'() "/" INBOX')
    assert ["Sent", "INBOX"] == [line.name for line in found]


def test_a_line_that_cannot_be_read_or_said_again_is_left_out_alone() -> None:
    bad: list[Record] = [b"() ", b'() "/" "\xc3\xbc"', (b'() "/" {3}', b"a\r\n"), b"", b'(\\A "/" x', b"x"]
    assert ["INBOX"] == [line.name for line in lines(*bad[:-1], b'() "/" INBOX')]


def test_a_name_that_no_command_line_can_carry_is_left_out_alone() -> None:
    assert ["Incoming"] == [line.name for line in lines(b'() "/" "' + b"x" * 70_000 + b'"', b'() "/" Incoming')]


def test_fetch_responses_go_by_their_uid_and_never_by_sequence_number() -> None:
    found = answers.fetched([b"1 (FLAGS (\\Seen) UID 9)", b"9 (FLAGS (\\Deleted))", b"2 (UID 1 FLAGS ())"])
    assert {9, 1} == found.keys()
    assert (b"\\Seen",) == found[9][b"FLAGS"]


def test_a_literal_in_a_response_is_put_together_again() -> None:
    found = answers.fetched(
        [
            (b"1 (UID 5 BODY[] {3}", b"a\r\n"),
            b" FLAGS (x))",
            (b"2 (UID 6 BODY[] {0}", b""),
            b")",
            b'3 (UID 7 BODY[] "q")',
        ]
    )
    assert [b"a\r\n", b"", b"q"] == [found[uid][b"BODY[]"] for uid in (5, 6, 7)]
    assert (b"x",) == found[5][b"FLAGS"]


def test_a_response_of_the_usual_form_is_read_as_any_other() -> None:
    head = b'3 (UID 7 FLAGS (\\Seen 12 NIL) INTERNALDATE " 1-Nov-2026 10:00:00 +0100" RFC822.SIZE 5 MODSEQ (9)'
    usual: list[Record] = [(head + b" BODY[] {5}", b"a\r\nb)"), b")"]
    # An item that is a string in quotes is read by the library's lexer.
    other: list[Record] = [(head + b' EMAILID ("x") BODY[] {5}', b"a\r\nb)"), b")"]
    (plain,), (lexed,) = answers.fetched(usual).values(), answers.fetched(other).values()
    for items in (plain, lexed):
        assert b"a\r\nb)" == items[b"BODY[]"]
        assert 5 == items[b"RFC822.SIZE"]
        assert datetime(2026, 11, 1, 9, tzinfo=UTC) == answers.internaldate_of(items)
        assert MessageState(frozenset({"\\Seen", "12", "NIL"}), 9) == answers.state_of(items)


def test_a_response_that_is_no_imap_is_an_error_of_protocol() -> None:
    with pytest.raises(ProtocolError):
        answers.fetched([b"1 (UID 5 FLAGS ("])


@pytest.mark.parametrize(
    "record",
    [
        b"1 (UID 5 FLAGS (\\Seen \\Recent $x) MODSEQ (77))",
        b"1 (MODSEQ (77) FLAGS ($x \\recent \\Seen) UID 5)",
        b"1 (uid 5 flags (\\Seen $x) modseq (77))",
        b'1 (UID 5 FLAGS (\\Seen $x) MODSEQ (77) X-GUID "a")',
    ],
)
def test_states_are_read_in_any_order_and_without_recent(record: bytes) -> None:
    assert {5: MessageState(frozenset({"\\Seen", "$x"}), 77)} == answers.states([record])


def test_keywords_that_look_like_numbers_or_nil_are_keywords() -> None:
    for record in (b"1 (UID 5 FLAGS (123 NIL))", b'1 (UID 5 FLAGS (123 NIL) X "a")'):
        assert frozenset({"123", "NIL"}) == answers.states([record])[5].flags


def test_states_without_a_uid_or_without_flags_say_nothing() -> None:
    assert {} == answers.states([b"1 (FLAGS (\\Seen))", b"2 (UID 5)", b"3 (UID 6 MODSEQ (1))"])


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (b'"29-Nov-2026 10:00:00 +0100"', datetime(2026, 11, 29, 9, tzinfo=UTC)),
        (b'" 1-Jan-1999 00:00:00 -1130"', datetime(1999, 1, 1, 11, 30, tzinfo=UTC)),
        (b'"29-Nov-2026 10:00:00 -0000"', datetime(2026, 11, 29, 10, tzinfo=UTC)),
        (b'"99-Nov-2026 10:00:00 +0100"', None),
        (b'"31-Dec-9999 23:00:00 -1200"', None),
        (b'"29-nov-2026 10:00:00 +0145"', datetime(2026, 11, 29, 8, 15, tzinfo=UTC)),
        # Not as the standard has it, and still a date.
        (b'"9-Nov-2026 10:00:00 +0100"', datetime(2026, 11, 9, 9, tzinfo=UTC)),
        (b'"29-Nov-2026 10:00:00 GMT"', datetime(2026, 11, 29, 10, tzinfo=UTC)),
        (b'"29-Nox-2026 10:00:00 +0100"', None),
        (b'"29-Nov-2026 10:00:00 +9900"', None),
        (b'"nonsense"', None),
        (b"NIL", None),
    ],
)
def test_a_date_is_an_instant_in_utc_or_nothing(date: bytes, expected: datetime | None) -> None:
    assert expected == answers.internaldate_of(answers.fetched([b"1 (UID 5 INTERNALDATE " + date + b")"])[5])


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2999, 12, 31)).map(lambda each: each.replace(microsecond=0)),  # noqa: DTZ001 - the zone is drawn
    st.integers(-23 * 60, 23 * 60),
)
def test_a_date_is_what_the_library_takes_it_for(moment: datetime, minutes: int) -> None:
    sign, zone = "-" if minutes < 0 else "+", abs(minutes)
    date = f"{moment:%d-%b-%Y %H:%M:%S} {sign}{zone // 60:02}{zone % 60:02}".encode()
    (found,) = answers.fetched([b'1 (UID 5 INTERNALDATE "' + date + b'")']).values()
    assert parse_to_datetime(date, normalise=False) == answers.internaldate_of(found)


def test_status_tells_how_a_mailbox_stands_or_nothing_of_it() -> None:
    records: list[Record] = [
        b"INBOX (MESSAGES 3 uidnext 4 UIDVALIDITY 5 HIGHESTMODSEQ 6)",
        b'"B&APw-cher" (HIGHESTMODSEQ 9223372036854775807 UNSEEN 1 MESSAGES 0 UIDNEXT 1 UIDVALIDITY 5)',
        # As Dovecot 2.3 writes a name after NOTIFY.
        "Löhne (MESSAGES 1 UIDNEXT 2 UIDVALIDITY 5 HIGHESTMODSEQ 3)".encode(),
        b'"without" (MESSAGES 3 UIDNEXT 4 UIDVALIDITY 5)',
        b'"no mod-sequences" (MESSAGES 3 UIDNEXT 4 UIDVALIDITY 5 HIGHESTMODSEQ 0)',
        b'"no number" (MESSAGES 3 UIDNEXT NIL UIDVALIDITY 5 HIGHESTMODSEQ 2)',
        b'"odd" (MESSAGES 3 UIDNEXT)',
        (b"{5}", b"twice"),
        b" (MESSAGES 3 UIDNEXT 4 UIDVALIDITY 5 HIGHESTMODSEQ 6)",
        b"twice (MESSAGES 3 UIDNEXT 4 UIDVALIDITY 5 HIGHESTMODSEQ 6)",
    ]
    # Twice the same answer, as from round to round.
    assert answers.statuses(records) == answers.statuses(records)
    assert {
        "INBOX": MailboxStatus(uidvalidity=5, uidnext=4, messages=3, highestmodseq=6),
        "Bücher": MailboxStatus(uidvalidity=5, uidnext=1, messages=0, highestmodseq=2**63 - 1),
        "Löhne": MailboxStatus(uidvalidity=5, uidnext=2, messages=1, highestmodseq=3),
    } == answers.statuses(records)


def test_esearch_names_uids_by_ranges() -> None:
    assert UidRanges(((1, 3), (7, 7))) == answers.esearch_uids([b'(TAG "A1") UID ALL 1:3,7'])
    assert UidRanges(((5, 6),)) == answers.esearch_uids([b'(TAG "A1") UID all 6:5'])
    assert UidRanges() == answers.esearch_uids([b'(TAG "A1") UID'])
    assert answers.esearch_uids([]) is None


def test_ranges_are_joined_compared_and_spread_out_only_where_that_is_bounded() -> None:
    ranges = UidRanges.parsed([b"9,3:1", b"4,20:30"])
    assert ((1, 4), (9, 9), (20, 30)) == ranges.ranges
    assert 16 == len(ranges)
    assert {1, 4, 9, 25} == ranges.among([1, 4, 5, 8, 9, 10, 19, 25, 31])
    assert [1, 2, 3, 4, 9, *range(20, 31)] == ranges.spread(16)
    everything = UidRanges.parsed([b"1:4294967295"])
    assert {7} == everything.among({7})
    with pytest.raises(ValueError, match="4294967295"):
        everything.spread(1_000_000)


@pytest.mark.parametrize("uid_set", [b"", b"0", b"1:*", b"4294967296", b"1,,2", b"x", b"1 2", b"-1", b"99999999999"])
def test_what_is_no_set_of_uids_is_refused(uid_set: bytes) -> None:
    with pytest.raises(ValueError, match="UID"):
        UidRanges.parsed([uid_set])


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=8), st.sets(st.integers(0, 70)))
def test_ranges_hold_just_what_was_named(pairs: list[tuple[int, int]], uids: set[int]) -> None:
    named = {uid for pair in pairs for uid in range(min(pair), max(pair) + 1)}
    ranges = UidRanges.parsed(b"%d:%d" % pair for pair in pairs)
    assert sorted(named) == ranges.spread(100)
    assert named & uids == ranges.among(uids)


def test_the_names_of_status_are_decoded_and_one_that_cannot_be_read_is_told() -> None:
    records: list[Record] = [
        b'"B&APw-cher &- L&APY-hne" (MESSAGES 1)',
        (b"{16}", "Bücher & Löhne".encode()),
        b" (MESSAGES 1)",
        b"inbox (MESSAGES 1)",
        (b"{2}", b"\xff\xfe"),
        b" (MESSAGES 1)",
        b"(",
    ]
    assert ["Bücher & Löhne", "Bücher & Löhne", "INBOX", None, None] == answers.status_names(records)


def test_what_makes_messages_the_same_is_a_number_or_an_id_in_parentheses() -> None:
    assert "1278455344230334865" == answers.identity_of(1278455344230334865)
    assert "M6d99ac3275bb4e" == answers.identity_of((b"M6d99ac3275bb4e",))
    for other in (None, b"x", (), (b"a", b"b"), (1,), True):
        assert answers.identity_of(other) is None


def test_search_answers_may_come_in_parts_with_blanks_and_a_mod_sequence() -> None:
    assert [3, 1, 2] == answers.search_uids([b"3 1 ", b"2 (MODSEQ 99)", b"", None])
    assert [] == answers.search_uids([None])


def test_numbers_of_response_codes_are_read_up_to_their_end() -> None:
    assert 7 == answers.leading_number([b"6", b"7] here [x"])
    assert answers.leading_number([b"x"]) is None
    assert answers.leading_number([]) is None
    assert 12 == answers.status_number([b'"INBOX" (MESSAGES 3 UIDNEXT 12)'], b"UIDNEXT")
    assert answers.status_number([b'"UIDNEXT 9" (MESSAGES 3)'], b"UIDNEXT") is None


def test_namespaces_give_their_prefixes() -> None:
    record = b'(("" "/")) (("Other Users/" "/")) (("#shared." ".")("Gemeinsam &APw-/" "/"))'
    assert ["Other Users/", "#shared.", "Gemeinsam ü/"] == answers.namespace_prefixes([record])
    assert [] == answers.namespace_prefixes([b"NIL NIL NIL"])
    assert [] == answers.namespace_prefixes([b'(("'])


@settings(deadline=None)
@given(st.sets(st.integers(1, 2**32 - 1), min_size=1, max_size=300))
def test_uid_sets_name_just_the_uids_asked_for(uids: set[int]) -> None:
    written = list(answers.uid_sets(uids, 60))
    named: set[int] = set()
    for uid_set in written:
        assert len(uid_set) <= 60
        for part in uid_set.split(","):
            low, _, high = part.partition(":")
            named |= set(range(int(low), int(high or low) + 1))
    assert uids == named


@settings(deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=60), st.tuples(st.binary(max_size=40), st.binary(max_size=20)))))
def test_any_records_give_values_or_an_error_that_the_session_knows(records: list[Record]) -> None:
    for read in (
        answers.fetched,
        answers.states,
        answers.esearch_uids,
        answers.search_uids,
        answers.leading_number,
        answers.namespace_prefixes,
        answers.status_names,
        answers.statuses,
        lambda some: list(answers.list_lines(some)),
        lambda some: answers.status_number(some, b"UIDNEXT"),
    ):
        try:
            read(records)
        except (ProtocolError, ValueError, TypeError, IndexError, OverflowError):
            continue
