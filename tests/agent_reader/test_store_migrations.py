"""A file of the first version, with mail in it, becomes one of this version and loses nothing."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from agent_reader.query import email_query, parse_email_query
from agent_reader.store import CannotCalculateChanges, DataType, Store, document, migrations, search
from agent_reader.store.reading import read
from shared.message import parse
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter

SHOWN, HELD = (
    letter("shown words", headers={"Message-ID": "<1@x>"}),
    letter("held words", headers={"Message-ID": "<2@x>"}),
)


def _first_version(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    engine.dispose()
    with contextlib.closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(
            "INSERT INTO account VALUES (1, 'abcd', 2, 5, 0, 0, ?, NULL, NULL, NULL, NULL)", (int(START.timestamp()),)
        )
        raw.execute(
            "INSERT INTO mailboxes VALUES (1, 'F1', 'F1', 'INBOX', '/', '[]', 1, 1, 7, 3, NULL, 4, 0, 'listed')",
        )
        for number, octets in enumerate((SHOWN, HELD), 1):
            reading = read(fetched(number, octets), "F1", 7)
            key = (reading.received_at << 20) + number
            raw.execute("INSERT INTO threads VALUES (?, ?)", (number, "T" + reading.id[1:]))
            raw.execute(
                "INSERT INTO emails VALUES (?, ?, ?, ?, ?, NULL, 0, '', '', '', '[]', 1, ?)",
                (key, reading.id, number, reading.size, reading.received_at, 5 if octets is HELD else None),
            )
            raw.execute(
                "INSERT INTO email_texts VALUES (?, ?, ?, ?)",
                (key, reading.summary, document.pack(parse(octets)), search.pack_words(reading.words[:-1])),
            )
            raw.execute("INSERT INTO email_mailboxes VALUES (1, ?, ?, 1)", (key, number))
            for data_type, object_id in (("Email", reading.id), ("Thread", "T" + reading.id[1:])):
                raw.execute(
                    "INSERT INTO changes VALUES (?, ?, ?, 'created', ?)",
                    (data_type, number, object_id, int(START.timestamp())),
                )
        key = (read(fetched(1, SHOWN), "F1", 7).received_at << 20) + 1
        raw.execute("INSERT INTO copies VALUES (1, 1, ?, '[]', NULL, 0)", (key,))
        raw.execute("INSERT INTO set_aside VALUES (1, 2, 'notReadable', 'ValueError', 'Look at it.')")


def test_a_file_of_the_first_version_keeps_its_mail_and_its_threads(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    _first_version(folder / f"mail-{ACCOUNT}.db")
    account = Mirrored(folder)
    account.clock.now = datetime.now(UTC)
    account.store = Store(folder, account.clock)
    with contextlib.closing(account.store):
        with account.store.snapshot(ACCOUNT) as snapshot:
            asked = parse_email_query({"filter": {"text": "words"}})
            assert email_query(snapshot, asked).ids == (id_of(HELD), id_of(SHOWN))
            asked = parse_email_query({"filter": {"header": ["Message-ID", "<1@x>"]}})
            assert email_query(snapshot, asked).ids == (id_of(SHOWN),)
            emails = snapshot.emails([id_of(SHOWN), id_of(HELD)])
            epoch = snapshot.state.partition("-")[0]
        assert emails[id_of(SHOWN)].thread_id == "T" + id_of(SHOWN)[1:]
        # Ids were given: nothing is threaded anew. What an older reading set aside is tried again.
        assert account.mirror.is_threaded()
        assert account.mirror.set_aside("F1") == {}
        progress = account.store.progress(ACCOUNT)
        assert (progress.mailboxes[0].looked_at, progress.mailboxes[0].expected) == (START, None)
        # What changed before 0003 is not told by scope: those states are refused, never answered wrongly.
        with pytest.raises(CannotCalculateChanges):
            account.changes(DataType.EMAIL, f"{epoch}-1")
        before = account.state()
        account.end_round()
        assert account.query().ids == (id_of(SHOWN),)
        assert account.changes(DataType.EMAIL, before).destroyed == (id_of(HELD),)
