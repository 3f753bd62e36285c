"""What the commands have in common: the access file, times, and text of strangers on a terminal."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import typer

from agent_reader.config import ReaderSettings
from shared.settings import ConfigurationError
from shared.time_and_chance import utc_now

if TYPE_CHECKING:
    from agent_reader.access import Access

# A subject is told from another by its beginning; a terminal has some eighty columns.
_MOST_CHARACTERS: Final = 120


@contextmanager
def opened_access(settings: ReaderSettings, *, may_create: bool = False) -> "Iterator[Access]":
    """Open the tokens and the read log of a reader. Raises `ConfigurationError`."""
    from agent_reader.access import Access  # noqa: PLC0415 - heavy
    from agent_reader.access.database import FILE_NAME  # noqa: PLC0415 - heavy
    from agent_reader.listening import check_owner  # noqa: PLC0415 - with the rest

    folder = settings.store.folder
    check_owner(folder)
    if not may_create and not (folder / FILE_NAME).exists():
        raise ConfigurationError(
            "[store] url",
            f"there is no read log in {folder}.",
            "Mend the path; the reader makes it at its first start.",
        )
    with Access(folder, utc_now, secrets.token_bytes, keep=settings.reads.keep) as access:
        yield access


def tell(where: str, what: str, fix: str) -> None:
    """Tell a person, beside what a program takes from standard output, in the form of a mistake."""
    typer.echo(f"agent-reader: {where}: {what}\n  {fix}", err=True)


def in_utc(moment: datetime | None) -> datetime | None:
    """Return a moment as aware UTC; one without an offset is UTC."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def moment(at: datetime) -> str:
    """Return a moment as it is printed."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def shown(untrusted_text: str) -> str:
    """Return text of a stranger as one line that a terminal does not obey, cut where it is long."""
    from shared.fence import clean_line  # noqa: PLC0415 - with the rest

    line = clean_line(untrusted_text[: 4 * _MOST_CHARACTERS]).text
    kept = "".join(character if character.isprintable() else "?" for character in line)
    return kept if len(kept) <= _MOST_CHARACTERS else f"{kept[: _MOST_CHARACTERS - 1]}…"
