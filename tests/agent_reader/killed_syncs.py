"""Processes that sync and are killed by SIGKILL at one commit after the other; run by `test_sync_killed.py`.

`python -m tests.agent_reader.killed_syncs FOLDER`, with the account as JSON on standard input. For each commit of a
first sync, just before it and just after it, one line of JSON: what the store held when it died, what the next process
fetched, and what the store held then.
"""

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import structlog

from agent_reader.config import Account
from agent_reader.imap.session import ReadOnlySession
from agent_reader.imap.values import FetchedMessage
from agent_reader.store.store import Store
from agent_reader.sync.run import Sync

Uids = dict[str, list[int]]


class _Noting(ReadOnlySession):
    """Notes which messages were asked for."""

    asked: Uids

    def fetch_messages(self, uids: Any) -> dict[int, FetchedMessage]:
        assert self.open_mailbox is not None
        self.asked.setdefault(self.open_mailbox, []).extend(uids)
        return super().fetch_messages(uids)


def _store(folder: Path) -> Store:
    return Store(folder, lambda: datetime.now(UTC))


def _held(store: Store, account: Account) -> Uids:
    mirror = store.account(account.id)
    held = {mailbox.name: sorted(mirror.states(mailbox.id)) for mailbox in mirror.mailboxes()}
    return {name: uids for name, uids in held.items() if uids}


def _sync(folder: Path, account: Account, fatal: int, *, after: bool) -> dict[str, Uids]:
    """One whole round; a kill at the commit of that number, before it or after it; 0 for none."""
    commits = itertools.count(1)

    def at_commit(*_: object) -> int:
        if next(commits) == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with closing(_store(folder)) as store:
        held = _held(store, account)
        mirror = store.account(account.id)
        writer: apsw.Connection = mirror._connection
        if after:
            writer.set_wal_hook(at_commit)
        else:
            writer.set_commit_hook(lambda: bool(at_commit()))
        session = _Noting.open(account)
        session.asked = {}
        assert Sync(mirror, None, structlog.get_logger()).round(session).whole
        session.close()
        return {"held": held, "fetched": session.asked, "now": _held(store, account)}


def _in_a_process(act: Callable[[], object]) -> tuple[int, Any]:
    """Its result, by a pipe, and the signal that ended it, 0 for none."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            json.dump(act(), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as came:
        said = came.read()
    _, status = os.waitpid(pid, 0)
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0), json.loads(said) if said else None


def _main() -> None:
    base = Path(sys.argv[1])
    account = Account.model_validate(json.load(sys.stdin))
    # Made once: what makes the tables takes longer than the syncs.
    empty = base / "empty"
    with closing(_store(empty)) as store:
        store.account(account.id)
    for after in (False, True):
        for fatal in itertools.count(1):
            folder = base / f"{after}-{fatal}"
            shutil.copytree(empty, folder)
            ended_by, _ = _in_a_process(partial(_sync, folder, account, fatal, after=after))
            if ended_by == 0:
                break
            _, told = _in_a_process(partial(_sync, folder, account, 0, after=after))
            sys.stdout.write(json.dumps({"commit": fatal, "after": after, "signal": ended_by} | told) + "\n")


if __name__ == "__main__":
    _main()
