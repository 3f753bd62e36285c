"""The commands `backup` and `restore` of tokens, read log and index; heavy imports wait until they run."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from agent_reader.config import DEFAULT_PATH, ReaderSettings
from shared.command_line import Config
from shared.settings import load_settings
from shared.time_and_chance import utc_now


def backup(
    to: Annotated[
        Path | None, typer.Option(help="The folder of copies, mode 0700; left out, `backups` in the index's folder.")
    ] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Remove all but the newest so many.")] = None,
    index: Annotated[bool, typer.Option(help="The index too; left out, it is made anew from the mail server.")] = True,
    config: Config = DEFAULT_PATH,
) -> None:
    """Copy tokens, read log and index while they are in use, and print the folder of the copy."""
    from agent_reader.backing_up import backup_files  # noqa: PLC0415 - heavy

    folder = load_settings(config, ReaderSettings).store.folder
    typer.echo(str(backup_files(folder, to or folder / "backups", utc_now(), keep=keep, with_index=index)))


def restore(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="The folder that `backup` printed.")],
    config: Config = DEFAULT_PATH,
) -> None:
    """Put a copy's files where none are; refused while the reader runs."""
    from agent_reader.backing_up import restore_files  # noqa: PLC0415 - heavy

    folder = load_settings(config, ReaderSettings).store.folder
    for name in restore_files(folder, copy, secrets.token_bytes):
        typer.echo(f"{folder / name} is back.")
    typer.echo("Tokens that were revoked after the copy are good again: see `agent-reader token list`.")
