"""What is kept of messages, and for how long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent_reader.keep import Keep, Retention
from agent_reader.query import email_query, parse_email_query
from agent_reader.scope import ORDINARY, Depth, Scope
from agent_reader.store import Store
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter, mirrored

TEXT = (
    "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nwords of the body\r\n"
    "--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename=list.csv\r\n\r\nrows,of,attachment\r\n"
    "--b--"
)
LETTER = letter(TEXT, subject="Plain subject", content_type="multipart/mixed; boundary=b")


def keeping(account: Mirrored, retention: Retention) -> None:
    """Start anew with another measure."""
    account.store.close()
    account.store = Store(account.folder, account.clock, retention={ACCOUNT: retention})


def texts(account: Mirrored) -> set[str]:
    email = account.email(id_of(LETTER), "preview", "bodyValues", "attachments")
    with account.store.snapshot(ACCOUNT) as snapshot:
        kept = snapshot.message(snapshot.key_of(id_of(LETTER)) or 0)
    found = {part.content().decode().strip() for part in kept.root.subparts if part.content()}
    return found | ({f"preview {email['preview']}"} if email["preview"] else set())


BODY, ATTACHMENT, PREVIEW = "words of the body", "rows,of,attachment", "preview words of the body"


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (Keep.EVERYTHING, {BODY, ATTACHMENT, PREVIEW}),
        (Keep.TEXT, {BODY, PREVIEW}),
        (Keep.METADATA, set()),
    ],
)
@pytest.mark.parametrize("is_later", [False, True], ids=["from the start", "by a measure that became narrower"])
def test_no_more_is_kept_than_should_be(tmp_path: Path, keep: Keep, kept: set[str], is_later: bool) -> None:
    with mirrored(tmp_path / "store") as account:
        if not is_later:
            keeping(account, Retention(keep))
        account.begin("INBOX")
        account.add("INBOX", fetched(1, LETTER))
        before = account.email(id_of(LETTER), "subject", "size", "hasAttachment", "bodyStructure", "from")
        state = account.state()
        keeping(account, Retention(keep))
        account.end_round()
        assert texts(account) == kept
        assert account.email(id_of(LETTER), "subject", "size", "hasAttachment", "bodyStructure", "from") == before
        # What finds it changes with the text alone.
        assert (account.state() == state) is (keep is not Keep.METADATA or not is_later)
        assert account.found(subject="plain") == {id_of(LETTER)}
        assert account.found(hasAttachment=True) == {id_of(LETTER)}
        assert account.found(body="words") == (set() if keep is Keep.METADATA else {id_of(LETTER)})


def left_out(account: Mirrored, scope: Scope = ORDINARY, **condition: str) -> bool:
    """Whether a search says that some text was not searched."""
    with account.store.snapshot(ACCOUNT, scope) as snapshot:
        return email_query(snapshot, parse_email_query({"filter": condition})).texts_left_out


def test_a_search_for_words_says_that_the_text_of_some_email_is_not_kept(tmp_path: Path) -> None:
    elsewhere = Scope(received_since=START + timedelta(minutes=1))
    with mirrored(tmp_path / "store") as account:
        keeping(account, Retention(days=30))
        account.begin("INBOX")
        account.add("INBOX", fetched(1, LETTER, at=START), fetched(2, letter("other"), at=START + timedelta(days=20)))
        account.end_round()
        assert not left_out(account, text="plain")
        account.clock.now = START + timedelta(days=31)
        account.end_round()
        assert left_out(account, text="plain")
        assert left_out(account, body="words")
        assert not left_out(account, subject="plain")
        assert not left_out(account)
        # Nor does it tell of what the token does not see.
        assert not left_out(account, elsewhere, text="plain")


def test_a_search_for_words_says_that_of_some_email_the_header_alone_is_known(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, LETTER))
        account.end_round()
        assert not left_out(account, text="plain")
        assert left_out(account, Scope(depth=Depth.HEADERS), text="plain")
        account.add("INBOX", replace(fetched(2, letter("too large")), octets=None))
        account.end_round()
        assert left_out(account, text="plain")


def test_a_text_is_kept_for_so_many_days_since_it_was_received(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        keeping(account, Retention(days=30))
        account.begin("INBOX")
        account.add("INBOX", fetched(1, LETTER, at=START), fetched(2, letter("young"), at=START + timedelta(days=20)))
        account.add("INBOX", fetched(3, letter("ancient"), at=START - timedelta(days=31)))
        assert account.found(text="ancient") == set()
        for day, found in ((30, {id_of(LETTER)}), (31, set())):
            account.clock.now = START + timedelta(days=day)
            account.end_round()
            assert account.found(text="words") == found
        assert texts(account) == set()
        assert account.found(text="young") == {id_of(letter("young"))}


def test_many_are_brought_down_over_several_rounds_and_no_word_stays_in_the_file(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        words = "unrepeatable zanzibar quicksilver"
        account.add("INBOX", *(fetched(uid, letter(f"{words} {uid}")) for uid in range(1, 451)))
        keeping(account, Retention(Keep.METADATA))
        account.end_round()
        assert account.found(text="zanzibar") == set()
        account.store.close()
        octets = b"".join(path.read_bytes() for path in account.folder.iterdir())
        assert b"zanzibar" not in octets
        assert b"quicksilver" not in octets
