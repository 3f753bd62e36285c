"""Settings of both programs and something in what each keeps, for its doctor to look at; and what that found."""

from __future__ import annotations

import secrets
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import agent_reader.doctor.program
import change_executor.doctor.program
from agent_reader.access import Access, Agent
from agent_reader.access.read_log import Shown
from agent_reader.config import ReaderSettings
from agent_reader.store.database import open_file
from change_executor.config import ExecutorSettings
from change_executor.intake.proposer_tokens import create_token
from change_executor.journal.open import open_journal
from shared.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from shared.doctor.finding import Fault, Report
    from tests.servers.dovecot import Dovecot

NOW: Final = datetime.now(UTC)


def now() -> datetime:
    return NOW


def secret(folder: Path, text: str) -> Path:
    file = folder / "password"
    file.unlink(missing_ok=True)
    file.write_text(text)
    file.chmod(0o400)
    return file


def reader(
    server: Dovecot, folder: Path, *, user: str = "reader", port: int | None = None, mailbox: str = "Incoming"
) -> Path:
    """A reader's settings, an index and an access file, each with something in it."""
    state = folder / "index"
    if not state.exists():
        open_file(state / "mail-shop.db", "epoch", None).close()
        with Access(state, now, secrets.token_bytes) as access:
            token = access.create_token("triage")
            agent = access.authenticate(f"Bearer {token.text}")
            assert isinstance(agent, Agent)
            access.record(agent, [Shown("Email/get", "shop", ("M1",))])
    config = folder / "reader.toml"
    config.write_text(
        f'[store]\nurl = "sqlite:///{state}"\n[[accounts]]\nid = "shop"\nhost = "127.0.0.1"\ntls = "none"\n'
        f'port = {port or server.port}\nuser = "{user}"\nmailboxes = ["{mailbox}"]\n'
        f'secret_file = "{secret(folder, server.passwords[user])}"\n'
    )
    return config


def executor(server: Dovecot, folder: Path, *, user: str = "executor", port: int | None = None, **changes: str) -> Path:
    """An executor's settings and a journal with something in it."""
    folder.chmod(0o700)
    url = f"sqlite:///{folder}/journal.db"
    if not (folder / "journal.db").exists():
        with closing(open_journal(url, now)) as journal:
            create_token(journal, agent="triage", queue="support", days=90, random_octets=secrets.token_bytes)
            create_token(journal, agent="other", queue="support", days=90, random_octets=secrets.token_bytes)
    config = folder / "executor.toml"
    config.write_text(
        f'[review]\nallow_uids = [1500]\n[journal]\nurl = "{url}"\n{changes.get("journal", "")}\n'
        f'[[credentials]]\nid = "move"\nhost = "127.0.0.1"\ntls = "none"\nport = {port or server.port}\n'
        f'user = "{user}"\nsecret_file = "{secret(folder, server.passwords[user])}"\n'
        '[[queues]]\nid = "support"\ncredential = "move"\naccount = "shop"\nincoming = "Incoming"\n'
        f'[queues.to.processed]\nmailbox = "{changes.get("mailbox", "Processed")}"\n'
    )
    return config


def seen(config: Path, at: datetime = NOW) -> Report:
    if config.name == "reader.toml":
        return agent_reader.doctor.program.look_at_program(load_settings(config, ReaderSettings), lambda: at)
    return change_executor.doctor.program.look_at_program(load_settings(config, ExecutorSettings), lambda: at)


def faults(report: Report) -> set[Fault]:
    return {each.fault for each in report.findings}
