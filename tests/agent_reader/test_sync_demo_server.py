"""Sync against the demo's server (pymap): no CONDSTORE, no ESEARCH, no NAMESPACE, another order of items."""

from __future__ import annotations

import contextlib
import imaplib
import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from agent_reader.imap.session import ReadOnlySession
from agent_reader.sync.run import Sync
from deploy.demo.mailbox import MAILBOXES, messages
from tests.fakes.accounts import plain_account
from tests.fakes.mirror import FakeMirror

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The demo's server as a process; every login's password is `secret`."""
    for login in ("owner", "reader", "executor"):
        (tmp_path / login).write_text("secret")
        (tmp_path / login).chmod(0o600)
    command = [sys.executable, "-m", "deploy.demo.server", "--secrets", str(tmp_path), "--now", NOW.isoformat()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["port"]
        finally:
            process.terminate()


def test_the_whole_sample_comes_in_and_what_happens_is_seen(port: int, tmp_path: Path) -> None:
    sample = messages(NOW)
    mirror = FakeMirror()
    sync = Sync(mirror, None, structlog.get_logger())
    with contextlib.closing(ReadOnlySession.open(plain_account(port, tmp_path))) as session:
        assert sync.round(session).whole
        assert set(MAILBOXES) == mirror.names()
        for name in MAILBOXES:
            expected = Counter((each.octets, each.flags, each.received) for each in sample if each.mailbox == name)
            found = mirror.named(name).messages.values()
            assert expected == Counter((each.octets, each.state.flags, each.internaldate) for each in found)
        uid = min(mirror.named("Incoming").messages)
        moved = mirror.octets("Incoming")[uid]
        with imaplib.IMAP4("127.0.0.1", port, timeout=20) as owner:
            owner.login("owner", "secret")
            owner.select("Incoming")
            owner._simple_command("UID", "MOVE", str(uid), "Processed")
            owner.uid("STORE", str(max(mirror.named("Incoming").messages)), "+FLAGS", "(\\Flagged)")

        done = sync.round(session)

    assert (True, 1, 1, 1) == (done.whole, done.taken_in, done.changed, done.vanished)
    assert moved in mirror.octets("Processed").values()
    assert uid not in mirror.octets("Incoming")
    assert set() == mirror.destroyed
