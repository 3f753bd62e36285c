"""The commands `backup` and `restore` of the journal; heavy imports wait until they run."""

from pathlib import Path
from typing import Annotated, Final

import typer

from change_executor.command_line import DEFAULT_CONFIG, mistakes_named, settings_of
from shared.command_line import Config
from shared.time_and_chance import utc_now

_NEXT: Final = """\
Nothing moves: the stop button is pressed. Look at `user list` and `token list` (whoever was removed since may come in
again) and at the queue, then `change-executor resume`. Put the heads file aside and begin a new one: it tells of events
that this journal does not have."""


def backup(
    to: Annotated[
        Path | None, typer.Option(help="The folder of copies, mode 0700; left out, `backups` beside the journal.")
    ] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Remove all but the newest so many.")] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Copy the journal while it is in use, and print the folder of the copy."""
    from change_executor.backing_up import backup_journal  # noqa: PLC0415 - the journal is heavy
    from change_executor.journal.file import journal_path  # noqa: PLC0415 - the journal is heavy

    with mistakes_named():
        settings = settings_of(config)
        folder = to or journal_path(settings.journal.url).parent / "backups"
        typer.echo(str(backup_journal(settings, folder, utc_now, keep)))


def restore(
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="The folder that `backup` printed.")],
    heads: Annotated[
        list[Path] | None,
        typer.Option(help="A file that heads were told to: a heads_file, or the log. The configured one is read too."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Put a copy of the journal where none is; if it is behind what was told outside, nothing moves until `resume`."""
    from change_executor.backing_up import restore_journal  # noqa: PLC0415 - the journal is heavy

    with mistakes_named():
        settings = settings_of(config)
        configured = settings.journal.heads_file
        files = [*(heads or []), *([] if configured is None else [configured])]
        done = restore_journal(settings, copy, _published(files), utc_now)
    typer.echo(f"The journal is back, with {done.events} events. Everybody was signed out.")
    if done.is_behind:
        typer.echo(f"{done.asked_again} approved have to be decided again, {done.doubtful} are looked for.")
        typer.echo(_NEXT)
    else:
        typer.echo("It has every event that was told outside.")


def _published(files: list[Path]) -> dict[int, str]:
    from change_executor.heads import heads_together, published_heads  # noqa: PLC0415 - with the command
    from shared.settings import ConfigurationError  # noqa: PLC0415 - with the command

    found: dict[int, str] = {}
    for file in files:
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                found = heads_together(found, published_heads(lines))
        except OSError as error:
            raise ConfigurationError(
                str(file), f"cannot be read: {error.strerror}.", "Let this user read it, or give a copy with --heads."
            ) from None
    return found
