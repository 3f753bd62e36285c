"""The reader's installation, as its settings, its unit and this very process tell it."""

import sys
from pathlib import Path
from typing import Final

import agent_reader
import shared
from agent_reader.config import ReaderSettings
from shared.doctor.gate import gate_on
from shared.doctor.installation import AGENTS_GROUP, Installation, Login, house_on, user_by
from shared.doctor.users import User, members, user_named

COMMAND: Final = "agent-reader"
_EXECUTOR: Final = "change-executor"
_SOCKETS: Final = ("agent-reader.socket", "agent-reader-link.socket")
_BESIDE: Final = ("agent-reader-doctor@.service", "agent-reader-backup.service", "agent-reader-backup.timer")


def reader_installation(
    settings: ReaderSettings, config: Path, user: User | None, units: Path, agents: tuple[str, ...]
) -> Installation:
    """Return what the doctor looks at; agents are those named, and the members of the agents' group."""
    executor = user_by(settings.server.executor_uid, _EXECUTOR)
    named = tuple(found for found in map(user_named, agents) if found is not None)
    return Installation(
        own=house_on(COMMAND, user, config.absolute(), units),
        other=house_on(_EXECUTOR, executor, config.absolute().parent / "executor.toml", units),
        is_reader=True,
        prefix=Path(sys.prefix),
        interpreter=Path(sys.executable),
        packages=tuple(Path(package.__path__[0]) for package in (agent_reader, shared)),
        foreign=("change_executor",),
        agents=tuple({each.uid: each for each in (*named, *members(AGENTS_GROUP))}.values()),
        # Whose processes are agents, the executor's settings say; the reader's name none.
        agents_are_named=True,
        reviewers=(),
        peer_uid=settings.server.executor_uid,
        socket=settings.server.socket,
        logins=tuple(Login(each.id, each.host, each.port, each.user) for each in settings.accounts),
        units=units,
        sockets=_SOCKETS,
        units_beside=_BESIDE,
        gate=gate_on(config.absolute().parent / "gate.toml", units),
    )
