"""A first sync that is interrupted at every point in turn goes on and ends as if nothing had been; a full disk too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_reader.errors import IndexFull
from agent_reader.store import DataType
from tests.agent_reader.mirror_world import Killed, Mirror, WorldOwner, check_changes, check_equal
from tests.agent_reader.mirrored import ACCOUNT, fetched, id_of, letter, mirrored
from tests.fakes.accounts import plain_account
from tests.fakes.imap_server import ScriptedImapServer
from tests.fakes.imap_world import CONDSTORE, PLAIN

Answer = Callable[[bytes], "tuple[list[bytes], bytes] | None"]


def owner_of_mail() -> WorldOwner:
    owner = WorldOwner()
    for name in ("Archive", "Work"):
        owner.create(name)
    for number in range(6):
        octets = letter(f"number {number}", headers={"Message-ID": f"<{number}@x>", "References": f"<{number // 2}@x>"})
        owner.deliver(("INBOX", "Archive", "Work")[number % 3], octets, frozenset({"\\Seen"} if number % 2 else ()))
    return owner


@contextmanager
def mirror_of(answer: Answer, capabilities: bytes, folder: Path) -> Iterator[Mirror]:
    folder.mkdir()
    with ScriptedImapServer(answer, capabilities) as server:
        mirror = Mirror(plain_account(server.port, folder))
        try:
            yield mirror
        finally:
            mirror.close()


def test_a_reader_killed_before_any_commit_of_its_first_round_goes_on(tmp_path: Path) -> None:
    def die() -> None:
        raise Killed

    for call in itertools.count():
        owner = owner_of_mail()
        with mirror_of(owner.answer, PLAIN, tmp_path / str(call)) as mirror:
            mirror.round(call, die)
            died = mirror.deaths == 1
            before = mirror.view()
            mirror.settle()
            check_equal(mirror.view(), owner.content())
            check_changes(mirror, before, mirror.view(), limit=2)
        if not died:
            break
    assert call > 10


def test_a_connection_that_ends_at_any_reply_of_the_first_round_costs_no_message(tmp_path: Path) -> None:
    for last in itertools.count():
        owner = owner_of_mail()
        commands = itertools.count()
        ended = False

        def answer(command: bytes) -> tuple[list[bytes], bytes] | None:
            nonlocal ended
            if not ended and next(commands) == last:  # noqa: B023 - asked within this turn of the loop only
                ended = True
                return None
            return owner.answer(command)  # noqa: B023 - the same

        with mirror_of(answer, CONDSTORE, tmp_path / str(last)) as mirror:
            was_within = not mirror.round()
            mirror.settle()
            check_equal(mirror.view(), owner.content())
        if not was_within:
            break
    assert last > 10


def test_a_full_disk_takes_nothing_back_and_what_did_not_fit_comes_in_later(tmp_path: Path) -> None:
    with mirrored(tmp_path / "store") as account:
        account.begin("INBOX")
        account.add("INBOX", fetched(1, letter("fits")))
        connection = account.mirror._connection
        state = account.state()
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages + 2)
        large = [fetched(uid, letter(f"{uid} " + " ".join(f"word{uid}x{n}" for n in range(3000)))) for uid in (2, 3)]
        with pytest.raises(IndexFull):
            account.add("INBOX", *large)
        assert (account.query().ids, account.state()) == ((id_of(letter("fits")),), state)
        assert set(account.mirror.states(account.handle("INBOX"))) == {1}
        assert account.mirror.set_aside(account.handle("INBOX")) == {}
        connection.pragma("max_page_count", 2**31)
        account.add("INBOX", *large)
        assert account.query(calculateTotal=True).total == 3
        assert len(account.changes(DataType.EMAIL, state).created) == 2
        with account.store.snapshot(ACCOUNT) as snapshot:
            assert snapshot.connection.execute("PRAGMA integrity_check").get == "ok"
