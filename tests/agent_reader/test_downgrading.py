"""The reader's files taken back to older tables: the index with its mail, tokens and the read log not at all."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from agent_reader import migrating
from agent_reader.__main__ import app
from agent_reader.access import Access
from agent_reader.access import migrations as access_migrations
from agent_reader.downgrading import (
    Downgraded,
    Kind,
    Target,
    downgrade_files,
    found_revisions,
    preview_downgrade,
    target_of,
)
from agent_reader.listening import sole_use_of
from agent_reader.store import CannotCalculateChanges, DataType
from agent_reader.store import migrations as store_migrations
from shared.revisions import DowngradeRefused
from shared.settings import ConfigurationError
from tests.agent_reader.mirrored import ACCOUNT, START, fetched, id_of, letter, mirrored
from tests.agent_reader.test_store_thread_pages import threads_that_are_right

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.revisions import Revision

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
INDEX = f"mail-{ACCOUNT}.db"
HEAD = store_migrations.HEAD
# The oldest that a new mirror does not cost less than.
BACK = ["0006", "0007", "0008", "0009"]


@pytest.fixture
def folder(tmp_path: Path, made_once: Path) -> Path:
    """Tokens, and an index of mail of several years, some of it at the same second."""
    return shutil.copytree(made_once, tmp_path / "store")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("downgrading") / "store"
    with mirrored(folder) as account, Access(folder, lambda: NOW, secrets.token_bytes) as access:
        access.create_token("bot")
        account.begin("INBOX")
        for uid in range(1, 41):
            at = START.replace(year=2020 + uid % 5) if uid % 3 else START
            account.add("INBOX", fetched(uid, letter(f"words number{uid}", subject=f"s{uid}"), at=at))
        account.end_round()
    return folder


def index(revision: str) -> list[Target]:
    return [Target(Kind.INDEX, revision)]


def tables(path: Path) -> dict[str, str]:
    with contextlib.closing(sqlite3.connect(path)) as raw:
        found = raw.execute("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {name: " ".join(sql.split()).replace(" ,", ",") for name, sql in found}


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the tables of the migrations hold; the search table is made anew, and its shape is nobody's matter here."""
    with contextlib.closing(sqlite3.connect(path)) as raw:
        raw.row_factory = sqlite3.Row
        names = [
            name.removeprefix("table ")
            for name in tables(path)
            if name.startswith("table ") and not name.startswith(("table search", "table sqlite_"))
        ]
        found = {name: [dict(row) for row in raw.execute(f"SELECT * FROM {name}")] for name in names}
    for row in found.get("account", ()):
        del row["search_shape"]
    return {name: sorted(tuple(sorted(row.items())) for row in held) for name, held in found.items()}


def upgraded(path: Path, revision: str) -> None:
    """As the release of then left it."""
    with migrating.write_transaction(path) as connection:
        migrating.upgrade(connection, store_migrations, revision)


def test_an_index_goes_back_step_by_step_and_up_again_with_its_mail(folder: Path, tmp_path: Path) -> None:
    path = folder / INDEX
    before, held = tables(path), rows(path)
    for number in reversed(BACK):
        (fresh := tmp_path / f"{number}.db").touch()
        upgraded(fresh, number)
        copy, (done,) = downgrade_files(folder, index(number), tmp_path / f"copies-{number}", NOW)
        assert copy is not None
        assert {INDEX, "access.db", "manifest.json"} == {each.name for each in copy.iterdir()}
        assert (INDEX, number) == (done.file, done.after)
        assert done.lost
        wanted, found = tables(fresh), tables(path)
        assert wanted == {name: sql for name, sql in found.items() if name in wanted}
        # What is there beside is what the store makes itself, whatever the revision.
        assert found.keys() - wanted.keys() <= before.keys()
        now = rows(path)
        assert {(INDEX, number)} == set(found_revisions(folder, Kind.INDEX).items())
        for name in now.keys() - {"emails", "alembic_version"}:
            assert held[name] == now[name], name
        assert without_place(held["emails"]) == without_place(now["emails"])
    with mirrored(folder) as account:
        assert {id_of(letter("words number7", subject="s7"))} == account.found(text="number7")
        assert 40 == len(account.found())
    assert before == tables(path)
    assert 40 == threads_that_are_right(folder)
    # Places are given anew, in the order in which they were.
    given = [dict(row) for row in rows(path)["emails"]]
    assert without_place(held["emails"]) == without_place(rows(path)["emails"])
    by_key = sorted(given, key=lambda row: row["key"])
    assert by_key == sorted(given, key=lambda row: row["place"], reverse=True)
    assert len(given) == len({row["place"] for row in given})


def without_place(emails: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(item for item in row if item[0] != "place") for row in emails)


def test_places_of_an_older_release_are_those_that_it_would_have_given(folder: Path, tmp_path: Path) -> None:
    path = folder / INDEX
    downgrade_files(folder, index("0007"), tmp_path / "a", NOW, with_index=False)
    taken_back = rows(path)["emails"]
    downgrade_files(folder, index("0006"), tmp_path / "b", NOW, with_index=False)
    upgraded(path, "0007")
    assert rows(path)["emails"] == taken_back


def test_states_of_before_are_refused_after_the_search_table_was_made_anew(folder: Path, tmp_path: Path) -> None:
    with mirrored(folder) as account:
        told = account.state()
    downgrade_files(folder, index("0008"), tmp_path / "copies", NOW)
    with mirrored(folder) as account, pytest.raises(CannotCalculateChanges):
        account.changes(DataType.EMAIL, told)


def test_what_is_a_lock_or_evidence_or_costs_more_than_a_new_mirror_is_refused_by_its_name(
    folder: Path, tmp_path: Path
) -> None:
    def refused(code: str, *targets: Target) -> str:
        files = {name: rows(folder / name) for name in (INDEX, "access.db")}
        with pytest.raises(DowngradeRefused) as tried:
            preview_downgrade(folder, targets)
        with pytest.raises(DowngradeRefused) as done:
            downgrade_files(folder, targets, tmp_path / secrets.token_hex(4), NOW, with_index=False)
        assert (code, code) == (tried.value.code, done.value.code)
        assert files == {name: rows(folder / name) for name in (INDEX, "access.db")}
        return done.value.fix

    for number in ("0001", "0005"):
        assert "remove mail-*.db" in refused("made_anew", *index(number))
    assert "move access.db" in refused("tokens_would_open_more", Target(Kind.ACCESS, "0001"))
    # All of them or none.
    refused("tokens_would_open_more", *index("0008"), Target(Kind.ACCESS, "0001"))
    refused("named_twice", *index("0008"), *index("0007"))
    for unknown in ("base", "0000", "0011", ""):
        refused("unknown_revision", *index(unknown))
    downgrade_files(folder, index("0007"), tmp_path / "copies", NOW)
    refused("already_older", *index("0008"))
    with contextlib.closing(sqlite3.connect(folder / INDEX)) as raw, raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    assert "agent-reader downgrade --to index:0008" in refused("newer_program", *index("0008"))
    for text in ("0008", "journal:0001", "INDEX:0008", ":"):
        with pytest.raises(DowngradeRefused, match="unknown_target"):
            target_of(text)
    assert Target(Kind.INDEX, "0008") == target_of("index:0008")


def test_nothing_is_done_under_a_running_reader_or_where_nothing_is_to_do(folder: Path, tmp_path: Path) -> None:
    with sole_use_of(folder):
        for act in (
            lambda: preview_downgrade(folder, index("0008")),
            lambda: downgrade_files(folder, index("0008"), tmp_path / "copies", NOW),
        ):
            with pytest.raises(ConfigurationError, match="another agent-reader is running"):
                act()
    copy, done = downgrade_files(folder, [*index(HEAD), Target(Kind.ACCESS, "0002")], tmp_path / "copies", NOW)
    assert copy is None
    assert [(each.before, each.after, each.lost) for each in done] == [(HEAD, HEAD, ()), ("0002", "0002", ())]
    assert not (tmp_path / "copies").exists()
    with pytest.raises(ConfigurationError, match="there is no"):
        downgrade_files(tmp_path / "empty", index("0008"), tmp_path / "copies", NOW)


def test_a_failure_in_the_middle_leaves_every_index_as_it_was(folder: Path, tmp_path: Path) -> None:
    """Two accounts: what fails in the second was done in the first already."""
    (folder / "mail-other.db").write_bytes((folder / INDEX).read_bytes())
    with contextlib.closing(sqlite3.connect(folder / "mail-other.db")) as raw, raw:
        raw.execute(
            "CREATE TRIGGER planted BEFORE UPDATE ON alembic_version WHEN new.version_num = '0007' "
            "BEGIN SELECT RAISE(ABORT, 'planted'); END"
        )
    files = (INDEX, "mail-other.db")
    before = [(tables(folder / name), rows(folder / name)) for name in files]
    with pytest.raises(ConfigurationError, match="planted"):
        downgrade_files(folder, index("0007"), tmp_path / "copies", NOW)
    assert before == [(tables(folder / name), rows(folder / name)) for name in files]
    with contextlib.closing(sqlite3.connect(folder / "mail-other.db")) as raw, raw:
        raw.execute("DROP TRIGGER planted")
    _, done = downgrade_files(folder, index("0007"), tmp_path / "again", NOW)
    assert [("mail-main.db", "0007"), ("mail-other.db", "0007")] == [(each.file, each.after) for each in done]


def test_trying_says_what_is_done_and_changes_nothing(folder: Path, tmp_path: Path) -> None:
    before = tables(folder / INDEX), rows(folder / INDEX)
    tried = preview_downgrade(folder, index("0006"))
    assert before == (tables(folder / INDEX), rows(folder / INDEX))
    _, done = downgrade_files(folder, index("0006"), tmp_path / "copies", NOW)
    assert tried == done
    assert [Downgraded(INDEX, HEAD, "0006", done[0].lost)] == done
    assert 4 == len(done[0].lost)


def test_the_command_lists_tries_and_takes_back(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "reader.toml"
    config.write_text(
        f'[store]\nurl = "sqlite:///{folder}"\n[[accounts]]\nid = "{ACCOUNT}"\nhost = "localhost"\nuser = "u"\n'
        'secret_file = "/nowhere"\n'
    )

    def said(*words: str, status: int = 0) -> str:
        done = CliRunner().invoke(app, ["downgrade", *words, "--config", str(config)])
        assert status == done.exit_code, done.output
        return done.output

    listed = said("--list")
    assert f"* {HEAD}  0.1.0" in listed
    assert "access: access.db 0002" in listed
    assert said(status=2) == listed
    assert "would be taken back from 0010 to 0008" in said("--to", "index:0008", "--dry-run")
    assert f"* {HEAD}" in said("--list")
    told = said("--to", "index:0008", "--no-index")
    assert "Copied before to" in told
    assert "sudo deploy/install" in told
    assert "* 0008" in said("--list")
    assert "is of revision 0008 already" in said("--to", "index:0008")
    refused = CliRunner().invoke(app, ["downgrade", "--to", "access:0001", "--config", str(config)])
    assert isinstance(refused.exception, ConfigurationError)
    assert "tokens_would_open_more" in str(refused.exception)


@pytest.mark.parametrize("module", [store_migrations, access_migrations], ids=["index", "access"])
def test_every_revision_is_listed_with_its_release_and_is_the_last_of_one_file(module: Any) -> None:
    files = sorted((Path(module.__file__).parent / "versions").glob("v*.py"))
    revisions: Sequence[Revision] = module.REVISIONS
    assert [path.name[1:5] for path in files] == [revision.number for revision in revisions]
    assert module.HEAD == revisions[-1].number
    assert all(revision.release and revision.brought for revision in revisions)
