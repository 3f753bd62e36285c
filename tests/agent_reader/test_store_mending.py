"""What is kept of a message and was damaged is never shown, stops nothing else, and is read again by itself."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from agent_reader.damage import MessageDamaged
from agent_reader.keep import Keep, Retention
from agent_reader.store import DataType, Store
from agent_reader.store.search import SHAPE
from agent_reader.sync.proven import ProvenLogins
from agent_reader.sync.worker import Worker
from tests.agent_reader.email_get import email_get
from tests.agent_reader.mcp.desk import desked
from tests.agent_reader.mcp.desk import id_of as mcp_id_of
from tests.agent_reader.mirrored import ACCOUNT, Mirrored, fetched, id_of, letter, mirrored
from tests.agent_reader.on_loopback import await_true
from tests.agent_reader.served import MESSAGES, house
from tests.fakes.accounts import reader_account

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_reader.store import AccountMirror
    from tests.servers.dovecot import Dovecot

COLUMNS = ("document", "summary", "words")
TEAPOT, CUPS, RECEIPT = (
    letter("a teapot", headers={"Message-ID": "<1@x>"}),
    letter("two cups", headers={"Message-ID": "<2@x>", "References": "<1@x>"}),
    letter("a receipt"),
)
WHOLE: tuple[str, ...] = ("subject", "preview", "bodyValues", "threadId", "mailboxIds", "keywords", "references")


def damage(mirror: AccountMirror, column: str, email_id: str) -> None:
    """Another octet in the middle of what is kept: it unpacks to something else, or to nothing."""
    connection = mirror._connection
    found = "SELECT {} FROM email_texts WHERE key = (SELECT key FROM emails WHERE id = ?)"
    packed = bytearray(connection.execute(found.format(column), (email_id,)).get)
    packed[len(packed) // 3] ^= 0x10
    # The places behind a document are another thing (`body_places.py`).
    packed[3] ^= 0x01
    changed = f"UPDATE email_texts SET {column} = ? WHERE key = (SELECT key FROM emails WHERE id = ?)"
    connection.execute(changed, (bytes(packed), email_id))


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path) as opened:
        opened.begin("INBOX", "Archive")
        opened.add("INBOX", *(fetched(uid, octets) for uid, octets in enumerate((TEAPOT, CUPS, RECEIPT), 1)))
        opened.add("Archive", fetched(9, TEAPOT))
        opened.end_round()
        yield opened


def shown(account: Mirrored, *octets: bytes) -> list[dict[str, Any]]:
    with account.store.snapshot(ACCOUNT) as snapshot:
        return list(email_get(snapshot, map(id_of, octets), properties=WHOLE, fetch_text=True).list)


def read_again(account: Mirrored) -> None:
    """What sync does with what is missing."""
    assert set() == account.mirror.states(account.handle("Archive")).keys()
    assert {2, 3} == account.mirror.states(account.handle("INBOX")).keys()
    assert [None, None] == [mailbox.whole_at for mailbox in account.mirror.mailboxes()]
    account.add("INBOX", fetched(1, TEAPOT))
    account.add("Archive", fetched(9, TEAPOT))
    account.end_round()


@pytest.mark.parametrize("column", COLUMNS[:2])
def test_a_damaged_message_is_never_shown_and_is_as_before_once_it_was_read_again(
    account: Mirrored, column: str
) -> None:
    before, state = shown(account, TEAPOT, CUPS, RECEIPT), account.state()
    damage(account.mirror, column, id_of(TEAPOT))
    for asked in ((TEAPOT, CUPS, RECEIPT), (TEAPOT,)):
        with pytest.raises(MessageDamaged):
            shown(account, *asked)
    assert account.mirror.is_damaged()
    assert before[1:] == shown(account, CUPS, RECEIPT)
    assert (1, False) == (account.mirror.mend(), account.mirror.is_damaged())
    # It waits, and what waits is not mended twice.
    with pytest.raises(MessageDamaged):
        shown(account, TEAPOT)
    assert 0 == account.mirror.mend()
    assert {id_of(TEAPOT)} == account.found(text="teapot")
    read_again(account)
    assert before == shown(account, TEAPOT, CUPS, RECEIPT)
    assert {id_of(TEAPOT)} == account.found(text="teapot") == account.found(header=["Message-ID", "1@x"])
    # It was the same Email all the time.
    changes = account.changes(DataType.EMAIL, state)
    assert ([], [id_of(TEAPOT)], []) == tuple(map(list, (changes.created, changes.updated, changes.destroyed)))


def test_damaged_words_stop_no_round_and_are_found_again(account: Mirrored) -> None:
    damage(account.mirror, "words", id_of(TEAPOT))
    account.flag("INBOX", 1, "\\Flagged")
    assert account.mirror.is_damaged()
    assert {"$flagged"} == account.keywords(id_of(TEAPOT))
    assert set() == account.found(text="teapot")
    assert 1 == account.mirror.mend()
    read_again(account)
    assert {id_of(TEAPOT)} == account.found(text="teapot")


def test_damaged_words_do_not_stop_a_start_that_makes_the_search_table_anew(account: Mirrored) -> None:
    damage(account.mirror, "words", id_of(TEAPOT))
    account.mirror._connection.execute("UPDATE account SET search_shape = ?", (SHAPE + 1,))
    account.reopen()
    assert {id_of(CUPS)} == account.found(text="cups")
    read_again(account)
    assert {id_of(TEAPOT)} == account.found(text="teapot")


@pytest.mark.parametrize("met_before", [False, True])
def test_a_damaged_document_does_not_stop_a_start_that_folds_all_words_anew(
    account: Mirrored, *, met_before: bool
) -> None:
    damage(account.mirror, "document", id_of(TEAPOT))
    if met_before:
        assert 1 == account.mirror.mend()
    account.mirror._connection.execute("UPDATE account SET search_shape = 1")
    account.reopen()
    assert ({id_of(CUPS)}, set()) == (account.found(text="cups"), account.found(text="teapot"))
    read_again(account)
    assert {id_of(TEAPOT)} == account.found(text="teapot")


@pytest.mark.parametrize("column", COLUMNS)
def test_what_should_be_kept_no_more_is_forgotten_of_the_others(account: Mirrored, column: str) -> None:
    damage(account.mirror, column, id_of(TEAPOT))
    account.store.close()
    with closing(Store(account.folder, account.clock, retention={ACCOUNT: Retention(Keep.METADATA)})) as store:
        mirror = store.account(ACCOUNT)
        with pytest.raises(MessageDamaged):
            mirror.settle()
        assert 1 == mirror.mend()
        mirror.settle()
        kept = mirror._connection.execute("SELECT DISTINCT kept FROM emails").fetchall()
        assert [(int(Keep.METADATA),)] == kept


def test_what_is_there_no_more_is_destroyed(account: Mirrored) -> None:
    state = account.state()
    damage(account.mirror, "document", id_of(TEAPOT))
    assert 1 == account.mirror.mend()
    account.end_round()
    assert [id_of(TEAPOT)] == list(account.changes(DataType.EMAIL, state).destroyed)
    assert len(shown(account, CUPS, RECEIPT)) == 2


@pytest.mark.anyio
async def test_jmap_says_which_kind_of_error_it_is_and_that_it_passes(tmp_path: Path) -> None:
    with house(tmp_path) as served:
        ids = [mcp_id_of(each) for each in MESSAGES]
        damage(served.store.account("shop"), "document", ids[0])
        for name, arguments in (
            ("Email/get", {"ids": ids}),
            ("Email/query", {"filter": {"header": ["Subject", "order"]}}),
            ("SearchSnippet/get", {"filter": {"text": "teapot"}, "emailIds": ids}),
        ):
            said, error = await served.one(name, **arguments)
            assert ("error", "serverUnavailable", "message_damaged") == (said, error["type"], error["code"]), name
        assert served.store.account("shop").is_damaged()
        assert 2 == len((await served.one("Email/get", ids=ids[1:]))[1]["list"])
        assert not served.log.calls


def test_the_tools_say_it_too(tmp_path: Path) -> None:
    with desked(tmp_path) as standing:
        first = mcp_id_of(MESSAGES[0])
        damage(standing.house.store.account("shop"), "document", first)
        assert "message_damaged" == standing.error("read_mail", ids=[first])
        assert standing.house.store.account("shop").is_damaged()


def test_a_worker_reads_again_what_somebody_met(dovecot: Dovecot, tmp_path: Path) -> None:
    for octets in (TEAPOT, CUPS, RECEIPT):
        dovecot.deliver("INBOX", octets)
    log = structlog.get_logger()
    with closing(Store(tmp_path / "store", lambda: datetime.now(UTC))) as store:
        logins = ProvenLogins(tmp_path / "logins.json")
        worker = Worker(
            reader_account(dovecot, tmp_path, sync_seconds=86_400, push=[]),
            store.account(ACCOUNT),
            logins,
            log,
            lambda: 0.5,
        )
        worker.start()
        try:
            await_true(lambda: store.standing(ACCOUNT).settled_at is not None)
            mirror = store.account(ACCOUNT)
            (inbox,) = (each.id for each in mirror.mailboxes() if each.name == "INBOX")
            damage(mirror, "document", id_of(TEAPOT))
            with pytest.raises(MessageDamaged), store.snapshot(ACCOUNT) as snapshot:
                email_get(snapshot, [id_of(TEAPOT)], properties=("bodyStructure",))
            worker.wake()
            await_true(lambda: not mirror.is_damaged() and len(mirror.states(inbox)) == 3)
            with store.snapshot(ACCOUNT) as snapshot:
                assert 1 == len(email_get(snapshot, [id_of(TEAPOT)], properties=("bodyStructure",)).list)
        finally:
            worker.stop()
            assert worker.join(20.0)
