"""The command `downgrade` of the reader's files; heavy imports wait until it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_reader.config import DEFAULT_PATH, ReaderSettings
from shared.command_line import MISTAKE_STATUS, Config
from shared.settings import ConfigurationError, load_settings
from shared.time_and_chance import utc_now

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_reader.downgrading import Downgraded, Target

_NEXT: Final = """\
Start the older release now: `sudo deploy/install` in its checkout. Whatever command of this release opens a file before
brings it to this release's revision again, with nothing lost."""


def downgrade(
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND:REVISION", help="index:REVISION or access:REVISION; may be given for both."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be lost, and change nothing.")] = False,
    list_them: Annotated[
        bool, typer.Option("--list", help="Print the revisions, and which release has which.")
    ] = False,
    backups: Annotated[
        Path | None,
        typer.Option(help="Where the copy before is made, as of `backup`; left out, in the index's folder."),
    ] = None,
    index: Annotated[bool, typer.Option(help="Copy the index too; it can be made anew from the mail server.")] = True,
    config: Config = DEFAULT_PATH,
) -> None:
    """Take the index back to the tables of an older release; refused while the reader runs."""
    from agent_reader.downgrading import downgrade_files, preview_downgrade, target_of  # noqa: PLC0415 - heavy
    from shared.revisions import DowngradeRefused  # noqa: PLC0415 - with the command

    folder = load_settings(config, ReaderSettings).store.folder
    if list_them or not to:
        _print_revisions(folder)
        raise typer.Exit(0 if list_them else MISTAKE_STATUS)
    try:
        targets: list[Target] = [target_of(text) for text in to]
        if dry_run:
            _tell(preview_downgrade(folder, targets), "would be")
            typer.echo("Nothing was changed.")
            return
        copy, done = downgrade_files(folder, targets, backups or folder / "backups", utc_now(), with_index=index)
    except DowngradeRefused as refused:
        # `main` prints it as every other mistake of the operator's.
        raise ConfigurationError(refused.code, refused.detail, refused.fix) from None
    if copy is not None:
        typer.echo(f"Copied before to {copy}")
    _tell(done, "was")
    if copy is not None:
        typer.echo(_NEXT)


def _tell(done: "Iterable[Downgraded]", verb: str) -> None:
    for each in done:
        if each.before == each.after:
            typer.echo(f"{each.file} is of revision {each.after} already.")
            continue
        typer.echo(f"{each.file} {verb} taken back from {each.before} to {each.after}.")
        for lost in each.lost:
            typer.echo(f"  {lost}")


def _print_revisions(folder: Path) -> None:
    from agent_reader.downgrading import Kind, found_revisions, module_of, revisions_of  # noqa: PLC0415 - heavy
    from shared.revisions import installed_releases, table_of  # noqa: PLC0415 - with the command

    for kind in Kind:
        found = found_revisions(folder, kind)
        typer.echo(f"{kind}: {', '.join(f'{name} {revision}' for name, revision in found.items()) or 'no file'}")
        newest = max((revision for revision in found.values() if revision is not None), default=None)
        for line in table_of(revisions_of(kind), newest, installed_releases(module_of(kind))):
            typer.echo(line)
