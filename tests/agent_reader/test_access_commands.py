"""`agent-reader token ...` and `agent-reader reads ...`, on the files that a reader leaves."""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from agent_reader.__main__ import app
from agent_reader.access import Access, Agent, Shown
from agent_reader.access.scope_text import described
from agent_reader.commands.asked_scope import asked_budget, asked_lifetime, asked_scope
from agent_reader.scope import Depth, Scope
from agent_reader.store import Store
from shared.settings import ConfigurationError
from tests.agent_reader.mirrored import Mirrored, fetched, letter

HIDDEN = "Your verification code is 482913. It expires in 10 minutes."


class Reader:
    """The folder of a reader with an account, and its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "index"
        self.config = folder / "reader.toml"
        secret = folder / "secret"
        secret.write_text("secret\n")
        secret.chmod(0o600)
        self.config.write_text(
            f'[store]\nurl = "sqlite:///{self.folder}"\n\n[[accounts]]\nid = "main"\nhost = "localhost"\nport = 1\n'
            f'tls = "none"\nuser = "u"\nsecret_file = "{secret}"\n'
        )

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--config", str(self.config)])

    def said(self, *words: str) -> str:
        result = self.run(*words)
        assert 0 == result.exit_code, (result.output, result.exception)
        return result.stdout

    def refused(self, *words: str) -> str:
        result = self.run(*words)
        assert isinstance(result.exception, ConfigurationError), result.output
        return str(result.exception)

    def access(self) -> Access:
        return Access(self.folder, lambda: datetime.now(UTC), secrets.token_bytes)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    made = Reader(tmp_path)
    account = Mirrored(made.folder)
    account.begin("INBOX", "Bills", "Bills\x1b[31m")
    for number in range(12):
        account.add("INBOX", fetched(number + 1, letter(f"text {number}", subject=f"Subject {number}")))
    account.add("Bills", fetched(1, letter("pay", subject="A bill\x1b]0;owned\x07", sender="shop@example.net")))
    account.add("INBOX", fetched(50, letter(HIDDEN, subject="Your verification code")))
    account.end_round()
    account.store.close()
    return made


def test_a_token_is_made_with_its_scope_and_listed_with_all_that_is_known_of_it(reader: Reader) -> None:
    token = reader.said(
        *(
            "token",
            "create",
            "--agent",
            "clerk",
            "--mailbox",
            "Bills",
            "--since",
            "2026-01-01",
            "--sender",
            "Example.net",
        ),
        *("--depth", "text", "--budget", "2M", "--expires", "30d", "--note", "for the accountant"),
    ).strip()
    with reader.access() as access:
        agent = access.authenticate(f"Bearer {token}", "127.0.0.1")
        expected = Scope(
            mailboxes=("Bills",),
            received_since=datetime(2026, 1, 1, tzinfo=UTC),
            senders=("example.net",),
            depth=Depth.TEXT,
        )
        assert Agent("clerk", token.split("_")[1], expected, 2_000_000, "127.0.0.1") == agent
        assert timedelta(days=30) == access.tokens()[0].expires_at - access.tokens()[0].created_at
    listed = reader.said("token", "list")
    for words in (
        "clerk",
        "from 127.0.0.1",
        "mailboxes Bills",
        "example.net",
        "no attachments",
        "2000000 octets",
        "for the a",
    ):
        assert words in listed
    assert token not in listed


def test_every_limit_of_a_scope_is_told_and_one_that_is_none_is_not() -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    for scope, words in (
        (Scope(), "all mail but sign-in mail"),
        (Scope(accounts=("main", "other")), "accounts main, other"),
        (Scope(mailboxes=("Bills",)), "mailboxes Bills"),
        (Scope(received_since=since), "received since 2026-01-01T00:00:00+00:00"),
        (Scope(senders=("example.net",)), "from example.net"),
        (Scope(depth=Depth.HEADERS), "headers only"),
        (Scope(depth=Depth.TEXT), "no attachments"),
        (Scope(sign_in_mail=True), "sign-in mail too"),
        (Scope(mailboxes=(), sign_in_mail=True), "mailboxes ; sign-in mail too"),
    ):
        assert words == described(scope)


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as moved:
        moved.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_times_without_an_offset_are_utc_wherever_the_machine_stands(reader: Reader) -> None:
    naive, aware = datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)  # noqa: DTZ001 - as typer gives them
    assert aware == asked_scope((), since=naive).received_since == asked_scope((), since=aware).received_since
    assert timedelta(days=1) == asked_lifetime("2026-01-02", aware)
    assert timedelta(hours=15) == asked_lifetime("2026-01-02T00:00:00+09:00", aware)
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with Access(reader.folder, lambda: at, secrets.token_bytes) as access:
        access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", "main", ("M1",))])
    # The moment itself is in.
    assert "" != reader.said("reads", "--since", "2026-01-01T12:00:00")
    assert "" == reader.said("reads", "--since", "2026-01-01T12:00:01")


def test_senders_are_addresses_and_domains_in_lower_case_each_once() -> None:
    asked = asked_scope((), senders=("@Example.net", "example.net", "Ann@Example.ORG"))
    assert ("example.net", "ann@example.org") == asked.senders


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        ("ann@m\u00fcnchen.example", ("ann@m\u00fcnchen.example", "ann@xn--mnchen-3ya.example")),
        ("XN--mnchen-3ya.example", ("xn--mnchen-3ya.example", "m\u00fcnchen.example")),
        # Not the domain with two of them, which is another one; nor what stands for no label beyond ASCII.
        ("stra\u00dfe.example", ("stra\u00dfe.example", "xn--strae-oqa.example")),
        ("xn--99999999.example", ("xn--99999999.example",)),
        ("xn--a-.example", ("xn--a-.example",)),
    ],
)
def test_a_sender_is_seen_in_both_spellings_of_its_domain(typed: str, seen: tuple[str, ...]) -> None:
    assert seen == asked_scope((), senders=(typed,)).senders


@pytest.mark.parametrize(("text", "octets"), [("10k", 10_000), ("10000", 10_000), ("2M", 2_000_000), (None, None)])
def test_a_budget_is_a_number_of_octets_in_thousands_or_millions(text: str | None, octets: int | None) -> None:
    assert octets == asked_budget(text)


@pytest.mark.parametrize("text", ["", "9999", "9k", "0", "-5M", "1G", "10 k", "1.5M"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        asked_budget(text)


def test_a_token_that_nothing_was_asked_for_lives_ninety_days_and_sees_no_sign_in_mail(reader: Reader) -> None:
    reader.said("token", "create", "--agent", "clerk")
    with reader.access() as access:
        (known,) = access.tokens()
    assert (Scope(), None, timedelta(days=90)) == (known.scope, known.budget, known.expires_at - known.created_at)
    assert not known.scope.sign_in_mail


def test_a_preview_counts_and_names_the_newest_without_making_a_token(reader: Reader) -> None:
    told = reader.said("token", "create", "--agent", "clerk", "--preview")
    assert "13 messages; hidden: 0 outside the scope, 1 withheld" in told
    assert "12 INBOX" in told
    assert "Subject 11" in told
    assert "Subject 0" not in told
    assert "verification" not in told
    assert "\x1b" not in told
    with reader.access() as access:
        assert [] == access.tokens()
    narrow = reader.said(
        "token", "create", "--agent", "clerk", "--mailbox", "Bills", "--mailbox", "No such", "--preview"
    )
    assert "1 messages; hidden: 13 outside the scope, 0 withheld" in narrow
    assert "there is no mailbox No such now" in narrow
    assert "INBOX" not in narrow
    settings = reader.config.read_text()
    reader.config.write_text(settings + settings[settings.index("\n[[accounts]]") :].replace('"main"', '"other"'))
    elsewhere = reader.said("token", "create", "--agent", "clerk", "--account", "other", "--preview")
    assert ["main: not seen", "other: never synced"] == elsewhere.splitlines()[:2]


def test_a_preview_says_where_the_account_was_not_read_to_its_end(reader: Reader, tmp_path: Path) -> None:
    words = ("token", "create", "--agent", "clerk", "--preview")
    assert "not all yet" not in reader.said(*words)
    (tmp_path / "begun").mkdir()
    begun = Reader(tmp_path / "begun")
    account = Mirrored(begun.folder)
    account.begin("INBOX", "Bills")
    account.add("INBOX", fetched(1, letter("text")))
    account.store.close()
    assert (
        "main: 1 messages; hidden: 0 outside the scope, 0 withheld as sign-in mail"
        == begun.said(*words).splitlines()[0]
    )
    assert "not all yet" in begun.said(*words)


def test_the_preview_of_a_token_is_what_that_token_sees(reader: Reader) -> None:
    token = reader.said("token", "create", "--agent", "clerk", "--mailbox", "Bills", "--allow-sign-in-mail").strip()
    told = reader.said("token", "preview", token.split("_")[1])
    assert "1 Bills" in told
    assert "A bill" in told
    assert "Subject" not in told
    assert "no token" in reader.refused("token", "preview", "aaaaaaaa")


def test_a_token_for_a_mailbox_that_is_not_there_is_made_and_said_to_see_nothing(reader: Reader) -> None:
    made = reader.run("token", "create", "--agent", "clerk", "--mailbox", "bills", "--mailbox", "Inbox")
    assert made.stdout.startswith("mwr_")
    assert "--mailbox: there is no mailbox 'bills' now" in made.stderr
    assert "Inbox" not in made.stderr
    assert "" == reader.run("token", "create", "--agent", "clerk", "--mailbox", "Bills").stderr


def test_a_whole_token_stands_for_its_id_and_a_preview_says_that_one_is_revoked(reader: Reader) -> None:
    token = reader.said("token", "create", "--agent", "clerk").strip()
    assert "" == reader.run("token", "preview", token).stderr
    revoked = reader.said("token", "revoke", token)
    assert f"revoked {token.split('_')[1]}\n" == revoked
    assert "revoked" in reader.run("token", "preview", token).stderr
    again = reader.refused("token", "revoke", token)
    assert token.split("_")[2] not in again


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--account", "nobody"), "--account"),
        (("--sender", "no sender"), "--sender"),
        (("--sender", "word"), "--sender"),
        (("--budget", "12"), "--budget"),
        (("--budget", "much"), "--budget"),
        (("--expires", "0d"), "--expires"),
        (("--expires", "99999"), "--expires"),
        (("--expires", "2001-01-01"), "--expires"),
        (("--expires", "never"), "--expires"),
        (("--note", "x" * 501), "--note"),
    ],
)
def test_what_cannot_be_is_named_with_its_option(reader: Reader, words: tuple[str, ...], named: str) -> None:
    assert named in reader.refused("token", "create", "--agent", "clerk", *words)


def _read(reader: Reader) -> None:
    with reader.access() as access:
        clerk = Agent("clerk", "aaaaaaaa", peer="127.0.0.1")
        parts = (("M1", ("header", "text/1")),)
        access.record(clerk, [Shown("Email/get", "main", ("M1", "M2"), ("M1",), 1234, parts)], 1300)
        access.record(Agent("other", "bbbbbbbb"), [Shown("Email/query", "main", ("M2", "M11"))])


def test_the_read_log_says_who_was_shown_which_parts_of_what_and_from_where(reader: Reader) -> None:
    _read(reader)
    first, second = reader.said("reads").splitlines()
    assert "clerk aaaaaaaa 127.0.0.1 main Email/get 1234 M1[header,text/1] M2" in first
    assert "other bbbbbbbb - main Email/query 0 M2 M11" in second
    assert [second] == reader.said("reads", "--agent", "other").splitlines()
    assert "" == reader.said("reads", "--since", "2100-01-01")


def test_lines_of_one_message_name_it_alone_and_the_beginning_of_an_id_is_refused(reader: Reader) -> None:
    mine, other = "M" + "1" * 32, "M" + "2" * 32
    with reader.access() as access:
        parts = ((mine, ("header", "text/1")),)
        access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", "main", (mine, other), (mine,), 1234, parts)])
        access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", "main", (other,))])
    (line,) = reader.said("reads", "--message", mine).splitlines()
    assert line.endswith(f"1234 {mine}[header,text/1]")
    for beginning in ("M1", mine[:12], mine + "1", "T" + mine[1:]):
        assert "--message" in reader.refused("reads", "--message", beginning)


def test_what_a_limit_leaves_out_and_what_was_never_there_is_said_beside_the_lines(reader: Reader) -> None:
    _read(reader)
    reader.said("token", "create", "--agent", "clerk")
    narrow = reader.run("reads", "--limit", "1")
    assert (1, True) == (len(narrow.stdout.splitlines()), "--limit" in narrow.stderr)
    assert "" == reader.run("reads", "--limit", "2").stderr
    for words in (("--since", "2100-01-01"), ("--agent", "clerk", "--since", "2100-01-01")):
        assert ("", True) == ((nothing := reader.run("reads", *words)).stdout, "on record" in nothing.stderr)
        assert "--agent" not in nothing.stderr
    assert "never had a token" in reader.run("reads", "--agent", "clark").stderr


def test_the_commands_of_the_document_on_tokens_do_what_it_says(reader: Reader) -> None:
    text = (Path(__file__).parents[2] / "docs" / "tokens.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    lines = [line.removeprefix("agent-reader ") for line in blocks.splitlines()]
    assert 6 == len(lines)
    token = reader.said(*shlex.split(lines[0])).strip()
    for line in lines[1:]:
        reader.said(*shlex.split(line.replace("njqylrfq", token.split("_")[1])))
    with reader.access() as access:
        (known,) = access.tokens()
    assert known.revoked_at is not None
    # Each option of the table is one that there is, and takes what is given there.
    for cell in re.findall(r"^\| (`--.*?) \|", text, re.MULTILINE):
        for option in re.findall(r"`(--[^`]+)`", cell):
            words = shlex.split(option.replace("--account shop", "--account main"))
            reader.said("token", "create", "--agent", "clerk", *words, "--preview")


def test_the_read_log_as_json_and_as_csv(reader: Reader) -> None:
    _read(reader)
    first = json.loads(reader.said("reads", "--json").splitlines()[0])
    assert ("clerk", "127.0.0.1", 1234, True) == (first["agent"], first["from"], first["octets"], first["hasBodies"])
    assert {"emailId": "M1", "parts": ["header", "text/1"]} == first["messages"][0]
    rows = list(csv.DictReader(io.StringIO(reader.said("reads", "--csv"))))
    assert [("clerk", "M1"), ("clerk", "M2"), ("other", "M2"), ("other", "M11")] == [
        (row["agent"], row["emailId"]) for row in rows
    ]
    assert "header;text/1" == rows[0]["parts"]
    assert "--json" in reader.refused("reads", "--json", "--csv")


def test_verify_finds_a_changed_a_missing_and_a_last_row_and_a_head_that_was_written_down(reader: Reader) -> None:
    _read(reader)
    told = reader.said("reads", "verify")
    assert told.endswith("whole\n")
    head = told.splitlines()[0].rpartition("head ")[2]
    with reader.access() as access:
        access.record(Agent("clerk", "aaaaaaaa"), [Shown("Email/get", "main", ("M3",))])
    assert "whole" in reader.said("reads", "verify", "--head", head)
    wrong = head[:-1] + ("0" if head[-1] != "0" else "1")
    assert "not in this chain" in reader.run("reads", "verify", "--head", wrong).stdout
    for tampering, found in (
        ("UPDATE reads SET email_ids = '[\"M9\"]' WHERE key = 2", "row 2 is not what was written"),
        ("DELETE FROM reads WHERE key = 2", "between row 1 and row 3 rows are missing"),
        ("DELETE FROM reads WHERE key > 2", "rows after row 2 are missing"),
    ):
        with closing(sqlite3.connect(reader.folder / "access.db")) as connection:
            before = connection.execute("SELECT * FROM reads").fetchall()
            connection.execute(tampering)
            connection.commit()
            result = reader.run("reads", "verify")
            assert (1, True) == (result.exit_code, found in result.stdout), result.stdout
            connection.execute("DELETE FROM reads")
            connection.executemany(f"INSERT INTO reads VALUES ({', '.join('?' * len(before[0]))})", before)
            connection.commit()


def test_a_preview_makes_no_file_for_an_account_that_was_never_synced(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    Store(reader.folder, lambda: datetime.now(UTC)).close()
    assert "never synced" in reader.said("token", "create", "--agent", "clerk", "--preview")
