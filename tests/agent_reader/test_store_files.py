"""The file of an account: its tables, its privacy, its mistakes, and what survives a kill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest
from sqlalchemy import create_engine, inspect
from sqlalchemy.pool import NullPool

from agent_reader.errors import IndexDamaged
from agent_reader.query import email_query, mailbox_get, parse_email_query
from agent_reader.store import Store, migrations, schema, search
from agent_reader.store.database import account_file, connect
from shared.message import JSON
from shared.settings import ConfigurationError
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, blank_out, fetched, id_of, letter, listed, mirrored


def _file(account: Mirrored) -> Path:
    return account.folder / f"mail-{ACCOUNT}.db"


def test_the_migrations_make_the_tables_that_the_schema_describes(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        path = _file(account)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    made = inspect(engine)
    for table in schema.metadata.tables.values():
        columns = {column["name"]: column for column in made.get_columns(table.name)}
        assert list(columns) == [column.name for column in table.columns]
        for column in table.columns:
            assert columns[column.name]["nullable"] == column.nullable or column.primary_key
            assert str(columns[column.name]["type"]) == column.type.compile(engine.dialect)
        assert {index["name"] for index in made.get_indexes(table.name)} == {index.name for index in table.indexes}
        assert table.comment
    versions = sorted(Path(migrations.__file__).parent.glob("versions/v*.py"))
    assert migrations.HEAD == versions[-1].name[1:5]
    engine.dispose()


def test_the_index_is_its_owners_alone(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        assert stat.S_IMODE(account.folder.stat().st_mode) == 0o700
        for path in account.folder.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        account.store.close()
        _file(account).chmod(0o644)
        account.reopen()
        account.begin("INBOX")
        assert stat.S_IMODE(_file(account).stat().st_mode) == 0o600


@pytest.mark.parametrize("account_id", ["", "../mail", "a/b", "-a", "a" * 65, "ä"])
def test_an_account_id_that_cannot_name_a_file_stops_the_start(tmp_path: Path, account_id: str) -> None:
    store = Store(tmp_path, lambda: START)
    with pytest.raises(ConfigurationError, match="account id"):
        store.account(account_id)
    store.close()


def test_a_file_that_is_no_database_is_named_with_its_mend(tmp_path: Path) -> None:
    (tmp_path / f"mail-{ACCOUNT}.db").write_bytes(b"no database at all" * 100)
    store = Store(tmp_path, lambda: START)
    with pytest.raises(ConfigurationError, match="Delete the file"):
        store.account(ACCOUNT)
    store.close()


def test_a_folder_that_cannot_be_written_to_is_no_reason_to_delete_the_file(tmp_path: Path) -> None:
    with mirrored(tmp_path) as account:
        account.begin("INBOX")
        account.store.close()
        # As on a disk that is read-only: what SQLite needs beside the file cannot be made. (Root may write anywhere.)
        beside = tmp_path / f"mail-{ACCOUNT}.db-wal"
        beside.mkdir()
        account.reopen()
        with pytest.raises(ConfigurationError) as refused:
            account.store.account(ACCOUNT)
        assert "Delete" not in refused.value.fix
        assert "read-only" in refused.value.fix
        beside.rmdir()
        assert ["INBOX"] == [mailbox.name for mailbox in account.mirror.mailboxes()]


def test_a_file_that_is_damaged_within_says_so_whoever_asks(tmp_path: Path) -> None:
    with mirrored(tmp_path) as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, letter("one")))
        inbox = account.handle("INBOX")
        account.store.close()
        blank_out(account_file(tmp_path, ACCOUNT), "copies")
        account.reopen()
        mirror = account.mirror
        for asks in (
            lambda: mirror.states(inbox),
            lambda: account.add("INBOX", fetched(2, letter("two"))),
            lambda: account.store.progress(ACCOUNT),
        ):
            with pytest.raises(IndexDamaged):
                asks()
        # What does not lie there can be told.
        assert [inbox] == [mailbox.id for mailbox in mirror.mailboxes()]
        assert 1 == account.store.status(ACCOUNT).messages


def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.store.close()
        connection = connect(_file(account))
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.close()
        account.store = Store(account.folder, account.clock)
        with pytest.raises(ConfigurationError, match="another version"):
            account.store.account(ACCOUNT)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "store", lambda: START)
    with pytest.raises(ConfigurationError, match="cannot be used"):
        store.account(ACCOUNT)
    store.close()


def test_the_search_table_is_made_anew_where_its_shape_is_another(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        octets = letter("searchable", subject="Grüße")
        account.add("INBOX", fetched(1, octets, flags=["\\Seen"]))
        account.add("Archive", fetched(1, octets))
        account.add("INBOX", fetched(2, letter("deleted"), flags=["\\Deleted"]))
        account.store.close()
        connection = connect(_file(account))
        connection.execute("UPDATE account SET search_shape = ?", (search.SHAPE + 1,))
        connection.execute("DELETE FROM search")
        connection.close()
        account.reopen()
        for condition in ({"text": "grusse searchable"}, {"hasKeyword": "$seen"}, {"notKeyword": "$flagged"}):
            assert account.found(**condition) == {id_of(octets)}
        in_both: list[JSON] = [{"inMailbox": account.mailbox_id(name)} for name in ("INBOX", "Archive")]
        both: JSON = {"operator": "AND", "conditions": in_both}
        assert account.query(filter=both).ids == (id_of(octets),)


def test_words_that_were_folded_in_another_way_are_made_anew_from_what_is_kept(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        octets = letter("Счёт №1234 ⭐", subject="Grüße")
        account.add("INBOX", fetched(1, octets))
        account.store.close()
        connection = connect(_file(account))
        older = search.pack_words(["", "", "", "", "grusse", "счет no1234", ""])
        connection.execute("UPDATE email_texts SET words = ?", (older,))
        connection.execute("UPDATE account SET search_shape = ?", (search.SHAPE - 1,))
        connection.close()
        account.reopen()
        for condition in ({"text": "счет 1234"}, {"body": "⭐"}, {"subject": "grusse"}):
            assert account.found(**condition) == {id_of(octets)}
        assert account.found(text="no1234") == set()


def test_a_reader_cannot_write_through_a_snapshot(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        with account.store.snapshot(ACCOUNT) as snapshot, pytest.raises(apsw.ReadOnlyError):
            snapshot.connection.execute("DELETE FROM mailboxes")


def test_a_snapshot_sees_nothing_of_what_is_written_meanwhile(tmp_path: Path) -> None:
    everything, by_word = (
        parse_email_query({"calculateTotal": True}),
        parse_email_query({"filter": {"text": "number"}, "calculateTotal": True}),
    )
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, letter("number 1")))
        with account.store.snapshot(ACCOUNT) as snapshot:
            before = (email_query(snapshot, everything), email_query(snapshot, by_word), mailbox_get(snapshot))
            account.add("INBOX", fetched(2, letter("number 2")))
            account.flag("INBOX", 1, "\\Seen")
            after = (email_query(snapshot, everything), email_query(snapshot, by_word), mailbox_get(snapshot))
            assert before == after
        assert account.query(calculateTotal=True).total == 2


def test_while_a_thread_writes_every_snapshot_is_of_one_piece(tmp_path: Path) -> None:
    """Each batch adds ten messages; each snapshot counts a multiple of ten by table, by word and by mailbox alike."""
    by_word = parse_email_query({"filter": {"text": "letter"}, "calculateTotal": True})
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX", "Archive")
        done = threading.Event()

        def write() -> None:
            for batch in range(40):
                uids = range(batch * 10 + 1, batch * 10 + 11)
                account.add("INBOX", *(fetched(uid, letter(f"letter {uid}")) for uid in uids))
                account.add("Archive", *(fetched(uid, letter(f"letter {uid}")) for uid in uids))
                account.vanish("INBOX", *uids)
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        states: dict[str, tuple[int | None, ...]] = {}
        while not done.is_set() or len(states) < 2:
            with account.store.snapshot(ACCOUNT) as snapshot:
                mailboxes = mailbox_get(snapshot).list
                words = email_query(snapshot, by_word)
                in_mailboxes = [
                    email_query(
                        snapshot,
                        parse_email_query({"filter": {"inMailbox": mailbox["id"]}, "calculateTotal": True}),
                    ).total
                    for mailbox in mailboxes
                ]
            assert words.total is not None
            assert words.total % 10 == 0
            assert [mailbox["totalEmails"] for mailbox in mailboxes] == in_mailboxes
            assert all(total is not None and total % 10 == 0 for total in in_mailboxes)
            seen = states.setdefault(words.query_state, (words.total, *in_mailboxes))
            assert seen == (words.total, *in_mailboxes)
        writer.join(60)
        assert not writer.is_alive()
        assert account.query(calculateTotal=True).total == 400


_WRITE_UNTIL_KILLED = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from agent_reader.store import Store
from tests.agent_reader import synced
from tests.agent_reader.mirrored import ACCOUNT, fetched, letter
store = Store(Path(sys.argv[1]), lambda: datetime.now(UTC))
mirror = store.account(ACCOUNT)
(inbox,) = [mailbox.id for mailbox in mirror.mailboxes()]
uid = len(mirror.states(inbox))
while True:
    synced.add(mirror, inbox, [fetched(uid + step, letter(f"killed {uid + step}")) for step in range(1, 51)])
    uid += 50
    print(uid, flush=True)
"""


@pytest.mark.parametrize("lines", [1, 3])
def test_a_kill_in_the_middle_of_a_batch_leaves_a_whole_index(tmp_path: Path, lines: int) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.store.close()
        with subprocess.Popen(
            [sys.executable, "-c", _WRITE_UNTIL_KILLED, str(account.folder)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            told = [int(process.stdout.readline()) for _ in range(lines)]
            os.kill(process.pid, signal.SIGKILL)
        account.reopen()
        total = account.query(calculateTotal=True).total
        assert total is not None
        assert total >= told[-1]
        assert total % 50 == 0
        assert len(account.mirror.states(account.handle("INBOX"))) == total
        assert account.query(filter={"text": "killed"}, calculateTotal=True).total == total
        assert account.mailbox("INBOX")["totalEmails"] == total
        connection = connect(_file(account))
        assert connection.pragma("integrity_check") == "ok"
        connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
        connection.close()
        account.add("INBOX", fetched(total + 1, letter("after")))
        assert account.query(calculateTotal=True).total == total + 1


def test_a_batch_that_fails_leaves_nothing_of_it(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        before = account.state()

        def broken() -> object:
            yield listed("INBOX")
            raise RuntimeError("the listing broke off")

        with pytest.raises(RuntimeError):
            account.mirror.put_mailboxes(broken())  # type: ignore[arg-type]  # an iterator all the same
        assert account.state() == before
        account.add("INBOX", fetched(1, letter()))
        assert account.query(calculateTotal=True).total == 1
