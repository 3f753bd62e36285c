"""A process that syncs, killed by SIGKILL at every commit: what it stored is not fetched again, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.fakes.reader_process import REPOSITORY
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from pathlib import Path

# Seconds: some fifty short processes, on a machine that has other things to do.
PATIENCE = 110


def test_killed_at_any_commit_it_goes_on_where_it_was(dovecot: Dovecot, tmp_path: Path) -> None:
    there: dict[str, list[int]] = {}
    for number in range(6):
        mailbox = ("INBOX", "Archive")[number % 2]
        octets = f"Subject: {number}\r\nMessage-ID: <{number}@x>\r\n\r\nbody {number}\r\n".encode()
        there.setdefault(mailbox, []).append(dovecot.deliver(mailbox, octets))
    secret = tmp_path / "secret"
    secret.write_text(dovecot.passwords["reader"])
    secret.chmod(0o400)
    account = {"id": "shop", "host": dovecot.host, "port": dovecot.port, "tls": "none", "user": "reader"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.agent_reader.killed_syncs", str(tmp_path)],
        input=json.dumps(account | {"secret_file": str(secret)}),
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    assert {False, True} == {death["after"] for death in deaths}
    assert len(deaths) > 20
    for death in deaths:
        assert there == death["now"], death
        for mailbox, uids in there.items():
            held, fetched = death["held"].get(mailbox, []), death["fetched"].get(mailbox, [])
            assert sorted(held + fetched) == uids, death
    # It died at every stage: with nothing stored yet, with a part, and with all.
    assert {0, 3, 6} <= {sum(map(len, death["held"].values())) for death in deaths}
