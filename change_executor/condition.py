"""What keeps proposals from going on, said as coarsely as somebody who may not know the configuration needs it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection, select

from change_executor.journal import schema
from change_executor.journal.journal import is_stopped
from change_executor.lifecycle import OPEN
from change_executor.outcomes import Waiting


class Hindrance(StrEnum):
    """Why what was proposed does not go on though nobody has anything to decide."""

    # a mail server, or the executor's login there: which one, and what is wrong, the status page tells
    MAIL_SERVER = "mail_server"
    # the reader's private socket
    READER = "reader"
    # a person has stopped everything
    STOPPED = "stopped"


HINDRANCE_OF: Final[Mapping[Waiting, Hindrance]] = MappingProxyType(
    {
        Waiting.MAIL_SERVER_UNREACHABLE: Hindrance.MAIL_SERVER,
        Waiting.LOGIN_REFUSED: Hindrance.MAIL_SERVER,
        Waiting.CERTIFICATE_REFUSED: Hindrance.MAIL_SERVER,
        Waiting.NO_STARTTLS: Hindrance.MAIL_SERVER,
        Waiting.SECRET_UNREADABLE: Hindrance.MAIL_SERVER,
        Waiting.MAILBOX_REFUSED: Hindrance.MAIL_SERVER,
        Waiting.SAME_MAILBOX: Hindrance.MAIL_SERVER,
        Waiting.MOVE_NOT_OFFERED: Hindrance.MAIL_SERVER,
        Waiting.READER_UNREACHABLE: Hindrance.READER,
        Waiting.READER_REFUSED: Hindrance.READER,
        Waiting.ACCOUNT_UNKNOWN: Hindrance.READER,
    }
)

_columns = schema.proposals.c
_WAITED_FOR: Final = (
    select(_columns.waiting_code).where(
        _columns.state.in_([state.value for state in sorted(OPEN)]),
        _columns.waiting_code.in_([waiting.value for waiting in HINDRANCE_OF]),
    )
).distinct()


def hindrances(connection: Connection) -> tuple[Hindrance, ...]:
    """Return what open proposals wait for that no decision ends; a server that nobody waits for is not asked."""
    found = {HINDRANCE_OF[Waiting(code)] for code in connection.execute(_WAITED_FOR).scalars()}
    if is_stopped(connection):
        found.add(Hindrance.STOPPED)
    return tuple(sorted(found))
