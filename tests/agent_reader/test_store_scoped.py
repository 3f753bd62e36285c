"""The seam of scopes: a narrowed connection has views in the place of its tables, and no way around them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from agent_reader.query import QueryRefused, email_query, parse_email_query
from agent_reader.scope import WHOLE, Depth, Scope
from agent_reader.store import DataType, migrations, schema
from agent_reader.store.changes import BY_OTHERS
from agent_reader.store.selection import All
from agent_reader.sync.mirror import SetAside
from shared.message import JSON
from tests.agent_reader.mirrored import (
    ACCOUNT,
    START,
    Mirrored,
    expect,
    fetched,
    id_of,
    letter,
    listed,
    mirrored,
    with_attachment,
)

INBOX = Scope(mailboxes=("inbox",), sign_in_mail=True)
CODE = letter("Your verification code is 482913.", subject="Your verification code")


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Mirrored]:
    with mirrored(tmp_path) as made:
        made.begin("INBOX", "Secret")
        made.add("INBOX", fetched(1, letter("one")), fetched(2, CODE))
        made.add("Secret", fetched(1, letter("two", sender="Eve <Eve@Other.net>")))
        made.end_round()
        yield made


def test_no_statement_reads_a_table_of_the_file_itself(account: Mirrored) -> None:
    """The planted violation: whoever names the table behind a view, or one that has none, is refused."""
    tables = {table.name for table in schema.metadata.sorted_tables} | {"search", "part_blobs"}
    for scope in (
        Scope(),
        INBOX,
        Scope(depth=Depth.TEXT),
        Scope(senders=("example.org",)),
        Scope(received_since=START),
    ):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            for table in sorted(tables):
                with pytest.raises(apsw.AuthError):
                    list(snapshot.connection.execute(f"SELECT * FROM main.{table}"))
    with account.store.snapshot(ACCOUNT, WHOLE) as snapshot:
        for table in sorted(tables - {"search"}):
            list(snapshot.connection.execute(f"SELECT * FROM main.{table}"))


def test_a_table_without_a_view_is_there_for_nobody_whose_sight_is_narrow(account: Mirrored) -> None:
    with account.store.snapshot(ACCOUNT, INBOX) as snapshot:
        views = {str(name) for (name,) in snapshot.connection.execute("SELECT name FROM sqlite_temp_schema")}
        for table in schema.metadata.sorted_tables:
            if table.name not in views:
                with pytest.raises(apsw.AuthError):
                    list(snapshot.connection.execute(f"SELECT * FROM {table.name}"))
        # The account's own numbers, and what becomes of mail that is seen; a new table has to be thought of.
        assert {
            *("account", "mailboxes", "emails", "email_texts", "copies", "email_mailboxes", "threads", "set_aside"),
            *("changes", "search", "part_blobs"),
        } <= views


def test_each_view_holds_what_is_seen_alone_whatever_the_statements_join(account: Mirrored) -> None:
    account.add("Secret", fetched(2, with_attachment("two")))
    account.add("INBOX", fetched(3, with_attachment("three")))
    account.add("Secret", fetched(4, letter("one")))
    for name, uid in (("INBOX", 90), ("Secret", 91)):
        account.mirror.put_aside(account.handle(name), SetAside(uid, "message_unreadable", "why", "fix"))
        expect(account.mirror, account.handle(name), 5)
    account.mirror.failed("mailbox_refused", "Secret cannot be read.", "Look at Secret.")
    with account.store.snapshot(ACCOUNT, WHOLE) as snapshot:
        hidden = {snapshot.key_of(id_of(each)) for each in (letter("two", sender="Eve <Eve@Other.net>"), CODE)}
        secret = snapshot.mailbox_key(account.mailbox_id("Secret"))
        threads = dict(snapshot.connection.execute("SELECT key, thread_key FROM emails"))
    columns = {
        "emails": "key",
        "email_mailboxes": "email_key",
        "email_texts": "key",
        "threads": "key",
        "copies": "email_key",
        "part_blobs": "email_key",
    }
    for scope in (Scope(mailboxes=("INBOX",)), Scope(mailboxes=("INBOX",), depth=Depth.TEXT)):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            for view, column in columns.items():
                rows = {key for (key,) in snapshot.connection.execute(f"SELECT {column} FROM {view}")}
                assert not rows & ({threads[key] for key in hidden} if view == "threads" else hidden), view
                assert (scope.depth is Depth.TEXT and view in {"copies", "part_blobs"}) == (not rows), view
            for view in ("email_mailboxes", "copies", "set_aside"):
                boxes = {key for (key,) in snapshot.connection.execute(f"SELECT mailbox_key FROM {view}")}
                assert secret not in boxes, view
                assert boxes or view == "copies"
            # What the server counts in a mailbox, and what it says of one.
            assert [None] == [each for (each,) in snapshot.connection.execute("SELECT expected FROM mailboxes")]
            failure = snapshot.connection.execute("SELECT failure_code, failure_detail, failure_fix FROM account")
            assert [("mailbox_refused", None, None)] == failure.fetchall()
    # Nor how many there are where only what signs somebody in is withheld; who sees everything may know.
    for scope, numbers in ((Scope(), {None}), (WHOLE, {5})):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            assert numbers == {each for (each,) in snapshot.connection.execute("SELECT expected FROM mailboxes")}


def test_the_threads_of_many_hits_are_counted_among_what_is_seen(account: Mirrored) -> None:
    def many(where: str) -> list[bytes]:
        return [letter(f"many {each}", headers={"Message-ID": f"<{where}{each}@x>"}) for each in range(100)]

    for name in ("INBOX", "Secret"):
        account.add(name, *(fetched(100 + uid, each) for uid, each in enumerate(many(name))))
    reply = letter("many replies", headers={"Message-ID": "<reply@x>", "References": "<INBOX1@x>"})
    account.add("INBOX", fetched(300, reply))
    for scope, expected in ((Scope(mailboxes=("INBOX",)), 100), (Scope(), 200), (WHOLE, 200)):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            found = email_query(
                snapshot,
                parse_email_query({"filter": {"body": "many"}, "collapseThreads": True, "calculateTotal": True}),
                max_limit=10,
            )
            assert expected == found.total


def test_a_narrow_connection_writes_nothing(account: Mirrored) -> None:
    for scope in (INBOX, Scope()):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            for statement in ("DELETE FROM main.emails", "DELETE FROM temp.scope_limits", "DROP VIEW temp.emails"):
                with pytest.raises(apsw.Error):
                    snapshot.connection.execute(statement)


@pytest.mark.parametrize(
    ("sender", "expected"),
    [("eve@other.net", 1), ("other.net", 1), ("ann@example.org", 2), ("net", 0), ("xother.net", 0), ("example", 0)],
)
def test_a_sender_is_an_address_or_a_whole_domain(account: Mirrored, sender: str, expected: int) -> None:
    with account.store.snapshot(ACCOUNT, Scope(senders=(sender,), sign_in_mail=True)) as snapshot:
        assert expected == snapshot.count(All(()))


@pytest.mark.parametrize(
    "sender",
    [
        "ann@example.org, eve@other.net",
        "",
        "not an address",
        "ann@example.org\r\nFROM: eve@other.net",
        "eve@other.net\r\nFrom: ann@example.org",
        "eve@other.net\r\nFrom: eve@other.net",
    ],
)
def test_a_message_with_several_senders_or_none_is_from_nobody(account: Mirrored, sender: str) -> None:
    content = letter("three", sender=sender)
    account.add("INBOX", fetched(30, content))
    for scope in (Scope(senders=("ann@example.org",)), Scope(senders=("other.net", "example.org"))):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            assert snapshot.key_of(id_of(content)) is None


LONG = "The shop is closed on Monday and open from Tuesday on, as the letter of last week said at some length. " * 3


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        (LONG, "<p>Your verification code is 482913. It expires in ten minutes.</p>"),
        ("Your verification code is 482913. It expires in ten minutes.", f"<p>{LONG * 3}</p>"),
    ],
)
def test_a_code_in_either_alternative_is_withheld(account: Mirrored, plain: str, html: str) -> None:
    content = letter(
        f"--b\r\nContent-Type: text/plain\r\n\r\n{plain}\r\n--b\r\nContent-Type: text/html\r\n\r\n{html}\r\n--b--",
        subject="From the shop",
        content_type="multipart/alternative; boundary=b",
    )
    account.add("INBOX", fetched(31, content))
    for scope, is_shown in ((Scope(), False), (Scope(sign_in_mail=True), True)):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            assert is_shown == (snapshot.key_of(id_of(content)) is not None)
    assert account.found(body="verification 482913 tuesday") == {id_of(content)}


def test_the_date_is_exact_to_the_second(account: Mirrored) -> None:
    at = START + timedelta(minutes=2)
    for since, expected in ((at, 1), (at + timedelta(microseconds=1), 0), (at - timedelta(seconds=1), 1)):
        with account.store.snapshot(ACCOUNT, Scope(received_since=since, sign_in_mail=True)) as snapshot:
            assert expected == snapshot.count(All(()))


def test_the_depth_ends_what_is_kept_of_a_message(account: Mirrored) -> None:
    content = with_attachment("readable")
    account.add("INBOX", fetched(40, content))
    for depth, texts, parts in ((Depth.FULL, 1, 2), (Depth.TEXT, 1, 2), (Depth.HEADERS, 0, 1)):
        with account.store.snapshot(ACCOUNT, Scope(depth=depth)) as snapshot:
            email = snapshot.emails([id_of(content)])[id_of(content)]
            message = snapshot.message(email.key)
            leaves = [part for part in message.root.walk() if not part.is_multipart]
            assert (parts, texts) == (len(leaves), sum(b"readable" in part.content() for part in leaves))
            assert ("readable" in str(email.summary["preview"])) is (depth is not Depth.HEADERS)
            assert bool(snapshot.copies(email.id, 5)) is (depth is Depth.FULL)


def test_a_question_about_bodies_is_refused_to_who_sees_headers_and_other_words_are_not_sought_there(
    account: Mirrored,
) -> None:
    nested: dict[str, JSON] = {"operator": "NOT", "conditions": [{"subject": "x", "body": "one"}]}
    plain: dict[str, JSON] = {"body": "one"}
    with account.store.snapshot(ACCOUNT, Scope(depth=Depth.HEADERS)) as snapshot:
        for condition in (plain, nested):
            with pytest.raises(QueryRefused):
                email_query(snapshot, parse_email_query({"filter": condition}))
        assert () == email_query(snapshot, parse_email_query({"filter": {"text": "one"}})).ids
        assert 2 == len(email_query(snapshot, parse_email_query({"filter": {"text": "letter"}})).ids)


def test_the_states_of_one_scope_are_none_of_anothers(account: Mirrored) -> None:
    scopes = (
        *(WHOLE, Scope(), INBOX, Scope(mailboxes=("Secret",)), Scope(depth=Depth.TEXT)),
        *(Scope(senders=("a.org",)), Scope(senders=("a.org",), sign_in_mail=True), Scope(received_since=START)),
    )
    states = []
    for scope in scopes:
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            states.append(snapshot.state.partition("-")[0])
    assert len(scopes) == len(set(states))


def test_a_view_that_began_before_another_tells_no_later_state(account: Mirrored) -> None:
    """Two views of a scope may begin in one order, and ask for their states in the other."""

    def number(state: str) -> int:
        return int(state.partition("-")[2])

    with account.store.snapshot(ACCOUNT, INBOX) as early:
        account.add("INBOX", fetched(70, letter("seventy")))
        with account.store.snapshot(ACCOUNT, INBOX) as late:
            assert number(early.state) < number(late.state)
        view = account.store._view(ACCOUNT, INBOX)
        assert view._last is not None
        assert number(early.state) == view.last_state(early.connection, view._last[0], number(early.state))


def test_hidden_mail_that_comes_in_is_counted_at_once_and_makes_no_state(account: Mirrored) -> None:
    def look() -> tuple[str, int, int]:
        with account.store.snapshot(ACCOUNT, Scope(mailboxes=("INBOX",))) as snapshot:
            return (snapshot.state, snapshot.hidden().outside, snapshot.hidden().withheld)

    state, _, _ = look()
    assert (state, 1, 1) == look()
    account.add("Secret", fetched(7, letter("seven")))
    assert (state, 2, 1) == look()
    account.add("INBOX", fetched(8, letter("Use 771204 as your login code.", subject="Login code")))
    assert (state, 2, 2) == look()
    account.add("INBOX", fetched(9, letter("nine")))
    assert state != look()[0]


def test_many_scopes_do_not_keep_many_files_open(account: Mirrored) -> None:
    for number in range(40):
        with account.store.snapshot(ACCOUNT, Scope(senders=(f"{number}.example",))) as snapshot:
            assert 0 == snapshot.count(All(()))
    assert 16 >= len(account.store._narrow)


def test_what_changed_is_forgotten_with_the_rest(account: Mirrored) -> None:
    with account.store.snapshot(ACCOUNT, INBOX) as snapshot:
        assert 2 == len(snapshot.changes(DataType.EMAIL, snapshot.state.partition("-")[0] + "-0", 100).created)
    account.put_listing(listed("INBOX"), listed("Secret", "\\Trash"))
    account.vanish("INBOX", 1, 2)
    account.end_round()
    account.clock.now = START + timedelta(days=40)
    account.add("INBOX", fetched(5, letter("five")))
    account.end_round()
    connection = account.mirror._connection
    assert [(0,), (0,), (1,), (0,)] == [
        connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        for table in ("gone_emails", "sign_in_emails", "email_changes", f"changes WHERE type = '{BY_OTHERS}'")
    ]


def test_mail_of_a_version_before_is_read_again_for_what_scopes_are_made_of(account: Mirrored, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir(mode=0o700)
    engine = create_engine(f"sqlite:///{old / 'mail-main.db'}")
    with engine.begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        connection.exec_driver_sql("ATTACH ? AS new", (str(tmp_path / "mail-main.db"),))
        for table in ("account", "mailboxes", "emails", "email_texts", "copies", "email_mailboxes", "threads"):
            columns = [row[1] for row in connection.exec_driver_sql(f"PRAGMA main.table_info({table})")]
            names = ", ".join(columns)
            connection.exec_driver_sql(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM new.{table}")
    engine.dispose()
    with mirrored(old) as migrated:
        for scope, expected in ((Scope(), 2), (Scope(senders=("other.net",)), 1), (INBOX, 2), (WHOLE, 3)):
            with migrated.store.snapshot(ACCOUNT, scope) as snapshot:
                assert expected == snapshot.count(All(()))


NAMES: tuple[tuple[str, ...], ...] = ((), ("a",), ("a", "b"), ("a, b",))


def test_scopes_that_differ_in_anything_have_fingerprints_that_differ() -> None:
    scopes = [
        Scope(),
        Scope(sign_in_mail=True),
        *(Scope(depth=depth) for depth in (Depth.TEXT, Depth.HEADERS)),
        *(Scope(received_since=START + timedelta(microseconds=number)) for number in range(2)),
        *(Scope(mailboxes=(f"box {number}",)) for number in range(100)),
        *(Scope(accounts=names) for names in NAMES),
        *(Scope(mailboxes=names) for names in NAMES),
        *(Scope(senders=names) for names in NAMES),
    ]
    assert len(scopes) == len({scope.fingerprint() for scope in scopes})


def test_a_limit_that_names_nothing_lets_nothing_through(account: Mirrored) -> None:
    assert not Scope(accounts=()).allows_account(ACCOUNT)
    for scope in (Scope(mailboxes=(), sign_in_mail=True), Scope(senders=(), sign_in_mail=True)):
        with account.store.snapshot(ACCOUNT, scope) as snapshot:
            assert 0 == snapshot.count(All(()))
            assert () == email_query(snapshot, parse_email_query({"filter": {"text": "one"}}), max_limit=9).ids
