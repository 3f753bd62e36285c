"""What the command lines of the programs have in common: where the settings are, and how a mistake ends."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from shared.settings import ConfigurationError

# 1 is a command that did not succeed; 2, as for a shell's own commands, one that was given wrongly.
MISTAKE_STATUS: Final = 2

Config = Annotated[Path, typer.Option("--config", help="The configuration file.", metavar="PATH")]


def run_program(app: typer.Typer, program: str) -> None:
    """Run a command; a mistake of whoever gave it ends with exit status 2 and one clear message."""
    try:
        app(prog_name=program)
    except ConfigurationError as error:
        typer.echo(f"{program}: {error}", err=True)
        sys.exit(MISTAKE_STATUS)
