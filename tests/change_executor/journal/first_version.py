"""A journal as the first version left it, which every later one must be able to read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import text

from change_executor.journal import migrations
from change_executor.journal.engine import writer_engine
from change_executor.journal.journal import Writing


def first_version(path: Path) -> None:
    """A journal as version 1 left it: a proposal that was looked at and moved, its texts, a token, a person, a stop."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    engine = writer_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes |= {"connection": connection, "now": None}
        command.upgrade(config, "0001")
        proposal: dict[str, Any] = {
            "id": f"P{1:020d}", "agent": "mailbot", "queue": "support", "email_id": f"M{1:032d}",
            "from_role": "incoming", "to_role": "processed", "state": "pending", "version": 1, "created_at": 1,
            "expires_at": 2,
        }  # fmt: skip
        evidence = {
            "id": 1, "proposal": f"P{1:020d}", "made_at": 1, "uidvalidity": 7, "uid": 3, "octets_sha256": "aa",
            "size": 9, "internaldate": "2026-11-29T12:00:00Z", "copies": 1, "reading_version": "1",
            "reading_sha256": "bb",
        }  # fmt: skip
        move = {
            "id": 1, "proposal": f"P{1:020d}", "kind": "move", "credential": "move", "source_mailbox": "Incoming",
            "source_uidvalidity": 7, "source_uid": 3, "target_mailbox": "Done", "target_uidvalidity": 8,
            "target_uidnext": 5, "octets_sha256": "aa", "size": 9, "internaldate": "2026-11-29T12:00:00Z",
            "started_at": 1, "concluded_at": 2, "conclusion": "moved", "new_uid": 5,
        }  # fmt: skip
        rows = {
            "proposals": proposal,
            "evidence": evidence,
            "texts": {"proposal": proposal["id"], "kind": "reason", "text": "A receipt"},
            "moves": move,
            "tokens": {"id": "abcdefgh", "agent": "mailbot", "queue": "support", "digest": "00", "created_at": 1,
                       "expires_at": 2},
            "people": {"name": "ada", "password_hash": "argon2", "created_at": 1},
            "switches": {"name": "stop", "since": 1, "by": "operator"},
            "examinations": {"queue": "support", "policy_version": "p", "examined_at": 1, "undo_permitted": 1},
        }  # fmt: skip
        for table, values in rows.items():
            names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), values)
        writing = Writing(connection, datetime(2026, 11, 1, tzinfo=UTC))
        stated = {key: value for key, value in proposal.items() if key not in {"id", "state", "version"}}
        writing.append(
            "proposal:propose", proposal["id"], "agent:mailbot",
            {"from": None, "to": "pending", "version": 1, "set": stated},
        )  # fmt: skip
        writing.append("move:intended", proposal["id"], "executor", {"move": 1})
        writing.append("texts:forget", "texts", "executor", {"proposals": 3, "texts": 6})
    engine.dispose()
