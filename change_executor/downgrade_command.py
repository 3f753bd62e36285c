"""The command `downgrade` of the journal; heavy imports wait until it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from change_executor.command_line import DEFAULT_CONFIG, mistakes_named, settings_of
from shared.command_line import MISTAKE_STATUS, Config
from shared.time_and_chance import utc_now

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings
    from change_executor.downgrading import Downgraded

_NEXT: Final = """\
Nothing moves: the stop button is pressed. Everybody was signed out.
Start the older release now: `sudo deploy/install` in its checkout. Whatever command of this release opens the journal
before brings it to {head} again, with nothing lost. Then look at the queue, and `change-executor resume`."""


def downgrade(
    to: Annotated[
        str | None, typer.Option(metavar="REVISION", help="The revision of the release to go back to.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be lost, and change nothing.")] = False,
    list_them: Annotated[
        bool, typer.Option("--list", help="Print the revisions, and which release has which.")
    ] = False,
    backups: Annotated[
        Path | None, typer.Option(help="Where the copy before is made, as of `backup`; left out, beside the journal.")
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Take the journal back to the tables of an older release, with all that it holds; refused while one runs."""
    with mistakes_named("Nothing was changed."):
        from change_executor.downgrading import downgrade_journal, preview_downgrade  # noqa: PLC0415 - heavy
        from change_executor.journal.file import journal_path  # noqa: PLC0415 - heavy

        settings = settings_of(config)
        if list_them or to is None:
            _print_revisions(settings)
            raise typer.Exit(0 if list_them else MISTAKE_STATUS)
        if dry_run:
            _tell(preview_downgrade(settings, to, utc_now), "would be")
            typer.echo("Nothing was changed.")
            return
        folder = backups or journal_path(settings.journal.url).parent / "backups"
        _tell(downgrade_journal(settings, to, folder, utc_now), "was")


def _tell(done: "Downgraded", verb: str) -> None:
    from change_executor.journal.migrations import HEAD, REVISIONS  # noqa: PLC0415 - with the command

    release = next(revision.release for revision in REVISIONS if revision.number == done.after)
    if done.before == done.after:
        typer.echo(f"The journal is of revision {done.after} already. It belongs to {release}.")
        return
    if verb == "was":
        typer.echo(f"Copied before to {done.copy}")
    typer.echo(f"The journal {verb} taken back from {done.before} to {done.after}, which belongs to {release}.")
    for each in done.lost:
        typer.echo(f"  {each}")
    typer.echo(f"{done.held.asked_again} approved have to be decided again, {done.held.doubtful} are looked for.")
    if verb == "was":
        typer.echo(_NEXT.format(head=HEAD))


def _print_revisions(settings: "ExecutorSettings") -> None:
    from change_executor.downgrading import found_revision  # noqa: PLC0415 - heavy
    from change_executor.journal import migrations  # noqa: PLC0415 - heavy
    from shared.revisions import installed_releases, table_of  # noqa: PLC0415 - with the command

    installed = installed_releases(Path(migrations.__file__))
    for line in table_of(migrations.REVISIONS, found_revision(settings), installed):
        typer.echo(line)
