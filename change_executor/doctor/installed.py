"""The executor's installation, as its settings, its unit and this very process tell it."""

import sys
from pathlib import Path
from typing import Final

import change_executor
import shared
from change_executor.config import ExecutorSettings
from shared.doctor.gate import gate_on
from shared.doctor.installation import AGENTS_GROUP, Installation, Login, house_on, user_by
from shared.doctor.users import User, members, user_named, user_of

COMMAND: Final = "change-executor"
_READER: Final = "agent-reader"
_SOCKETS: Final = ("change-executor-intake.socket", "change-executor-review.socket")
_BESIDE: Final = ("change-executor-doctor@.service", "change-executor-backup.service", "change-executor-backup.timer")


def executor_installation(
    settings: ExecutorSettings, config: Path, user: User | None, units: Path, agents: tuple[str, ...]
) -> Installation:
    """Return what the doctor looks at; agents are those of the settings, those named, and those of their group."""
    reader = user_by(settings.reader.uid, _READER)
    named = tuple(found for found in map(user_named, agents) if found is not None)
    allowed = tuple(user_of(uid) for uid in sorted(settings.intake.allow_uids))
    return Installation(
        own=house_on(COMMAND, user, config.absolute(), units),
        other=house_on(_READER, reader, config.absolute().parent / "reader.toml", units),
        is_reader=False,
        prefix=Path(sys.prefix),
        interpreter=Path(sys.executable),
        packages=tuple(Path(package.__path__[0]) for package in (change_executor, shared)),
        # No MCP, and none of the reader's own libraries: nothing in here speaks to a model.
        foreign=("agent_reader", "mcp", "apsw"),
        agents=tuple({each.uid: each for each in (*allowed, *named, *members(AGENTS_GROUP))}.values()),
        agents_are_named=bool(settings.intake.allow_uids),
        reviewers=tuple(user_of(uid) for uid in sorted(settings.review.allow_uids)),
        peer_uid=settings.reader.uid,
        socket=settings.reader.socket,
        logins=tuple(Login(each.id, each.host, each.port, each.user) for each in settings.credentials),
        units=units,
        sockets=_SOCKETS,
        units_beside=_BESIDE,
        gate=gate_on(config.absolute().parent / "gate.toml", units),
    )
