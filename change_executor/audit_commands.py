"""The commands of `audit`: the journal looked at, also by somebody who can write nothing where it lies."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from change_executor.command_line import DEFAULT_CONFIG, FAILED, answer, mistakes_named, say, settings_of
from shared.command_line import MISTAKE_STATUS, Config

if TYPE_CHECKING:
    from change_executor.journal.reading_only import ReadOnlyJournal

_NO_HEADS: Final = "Compared with no published heads: a chain made anew, or a copy put back, would not be seen."

audit = typer.Typer(help="The journal, looked at and left as it is.", no_args_is_help=True)

JournalFile = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        help="A journal's file, or a copy of one, in place of the configured one; no configuration is read.",
    ),
]


@audit.command()
def verify(
    heads: Annotated[
        list[Path] | None,
        typer.Option(help="A file that heads were told to: a heads_file, or the log. The configured one is read too."),
    ] = None,
    journal: JournalFile = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Verify the whole journal, and that it still has every published head; exit status 1 where something is wrong."""
    with _opened(journal, config) as (opened, heads_file):
        from change_executor import audit as auditing  # noqa: PLC0415 - the journal is heavy

        published = _published([*(heads or []), *([] if heads_file is None else [heads_file])])
        with opened.reading() as connection:
            found = auditing.verify(connection, published, covered=opened.covered)
        for finding in found.findings:
            answer(f"{finding.fault.value}: {finding.subject}: {finding.detail}")
        answer(f"{found.events} events, head {found.head}")
        say(f"Compared with {len(published)} published heads." if published else _NO_HEADS)
        if found.findings:
            raise typer.Exit(FAILED)


@audit.command()
def export(
    after: Annotated[int, typer.Option(help="Only the events after this number.")] = 0,
    journal: JournalFile = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Print every event as a line of JSON."""
    with _opened(journal, config) as (opened, _):
        from change_executor.records import export_events  # noqa: PLC0415 - the journal is heavy

        for lines in export_events(opened.reading, after):
            for line in lines:
                answer(line)


@audit.command()
def show(
    named: Annotated[str, typer.Argument(metavar="PROPOSAL|MESSAGE", help="A proposal (P...) or an Email id (M...).")],
    journal: JournalFile = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Print all that is on record about a proposal, or about every proposal for a message."""
    with _opened(journal, config) as (opened, _):
        from change_executor.errors import NoSuchProposal  # noqa: PLC0415 - with the command
        from change_executor.records import show as shown  # noqa: PLC0415 - the journal is heavy

        try:
            with opened.reading() as connection:
                for line in shown(connection, named):
                    answer(line)
        except NoSuchProposal:
            say(f"Nothing is on record about {named!r}.")
            raise typer.Exit(MISTAKE_STATUS) from None


@contextmanager
def _opened(journal: Path | None, config: Path) -> "Iterator[tuple[ReadOnlyJournal, Path | None]]":
    """The journal that is asked for, and where its heads are told."""
    with mistakes_named():
        from change_executor.journal.file import journal_path  # noqa: PLC0415 - the database is heavy
        from change_executor.journal.reading_only import TOLD, open_read_only  # noqa: PLC0415 - the database is heavy

        if journal is not None:
            file, heads_file = journal, None
        else:
            settings = settings_of(config)
            file, heads_file = journal_path(settings.journal.url), settings.journal.heads_file
        with open_read_only(file) as opened:
            if TOLD[opened.how]:
                say(TOLD[opened.how])
            yield opened, heads_file


def _published(files: list[Path]) -> dict[int, str]:
    from change_executor.heads import heads_together, published_heads  # noqa: PLC0415 - with the command

    found: dict[int, str] = {}
    for file in files:
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                heads = published_heads(lines)
        except OSError as error:
            say(f"{file} cannot be read: {error.strerror}. Mend the path, or let this user's group read it (0660).")
            raise typer.Exit(MISTAKE_STATUS) from None
        if not heads:
            say(f"{file} tells no head.")
            raise typer.Exit(MISTAKE_STATUS)
        found = heads_together(found, heads)
    return found
