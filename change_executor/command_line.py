"""What the commands of the executor have in common; heavy imports wait until one of them runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from shared.command_line import MISTAKE_STATUS

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings

DEFAULT_CONFIG: Final = Path("/etc/mailwarrant/executor.toml")

# Of a command that was right and did not succeed.
FAILED: Final = 1


@contextmanager
def mistakes_named(undone: str = "Nothing was done.") -> Iterator[None]:
    """End with one clear message and a status, where the operator, the machine or the journal stands in the way."""
    from change_executor.errors import JournalUnavailable  # noqa: PLC0415 - with the command
    from change_executor.intake.proposer_tokens import TokenRefused  # noqa: PLC0415 - with the command
    from change_executor.review.people import PersonRefused  # noqa: PLC0415 - with the command
    from shared.revisions import DowngradeRefused  # noqa: PLC0415 - with the command
    from shared.settings import ConfigurationError  # noqa: PLC0415 - with the command

    try:
        yield
    except (ConfigurationError, DowngradeRefused, TokenRefused, PersonRefused) as error:
        say(str(error))
        raise typer.Exit(MISTAKE_STATUS) from None
    except JournalUnavailable as error:
        say(f"The journal cannot be used: {error}. {undone} {error.fix}")
        raise typer.Exit(FAILED) from None


def settings_of(config: Path) -> "ExecutorSettings":
    """Return the settings. Raises `shared.settings.ConfigurationError`."""
    from change_executor.config import ExecutorSettings  # noqa: PLC0415 - with the command
    from shared.settings import load_settings  # noqa: PLC0415 - with the command

    return load_settings(config, ExecutorSettings)


def say(words: str) -> None:
    """Tell the operator something that is no answer: on standard error."""
    print(words, file=sys.stderr)  # noqa: T201 - a command prints


def answer(line: str) -> None:
    """Print a line of what was asked for: on standard output."""
    print(line)  # noqa: T201 - a command prints
