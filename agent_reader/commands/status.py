"""`agent-reader status`: how whole and fresh the index of each account is."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_reader.config import DEFAULT_PATH, ReaderSettings
from shared.command_line import Config
from shared.settings import load_settings
from shared.time_and_chance import utc_now

if TYPE_CHECKING:
    from agent_reader.commands.status_report import StatusReport
    from agent_reader.store import Store

# A person sees it move, and the index is not asked for more than that.
_FOLLOW_SECONDS: Final = 1.0
# ANSI X3.64: up so many lines; clear to the end of the screen.
_UP: Final = "\x1b[{}A\x1b[J"


def status(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with everything that is known.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Show the first sync go on until it is whole.")] = False,
    config: Config = DEFAULT_PATH,
) -> None:
    """Show how whole and fresh the index of each account is: mailboxes, rate, what failed and what was set aside."""
    from agent_reader.listening import check_owner  # noqa: PLC0415 - heavy
    from agent_reader.store import Store  # noqa: PLC0415 - heavy

    settings = load_settings(config, ReaderSettings)
    check_owner(settings.store.folder)
    store = Store(settings.store.folder, utc_now)
    try:
        report = _report(store, settings)
        if as_json:
            typer.echo(report.model_dump_json(by_alias=True, indent=2))
            return
        drawn = _draw(report, over=0)
        while follow and report.is_going_on:
            time.sleep(_FOLLOW_SECONDS)
            report = _report(store, settings)
            drawn = _draw(report, over=drawn)
    finally:
        store.close()


def _report(store: "Store", settings: ReaderSettings) -> "StatusReport":
    from agent_reader.commands.status_report import StatusReport, account_report, damaged, never_synced  # noqa: PLC0415 - heavy
    from agent_reader.errors import IndexDamaged  # noqa: PLC0415 - heavy
    from agent_reader.store.database import account_file  # noqa: PLC0415 - heavy

    accounts = []
    for account in settings.accounts:
        # Looking must not make a file.
        if not account_file(settings.store.folder, account.id).exists():
            accounts.append(never_synced(account.id))
            continue
        try:
            accounts.append(
                account_report(
                    account.id,
                    store.status(account.id),
                    store.progress(account.id),
                    is_fresh=store.is_fresh(account.id),
                    daily_octets=account.daily_octets,
                )
            )
        except IndexDamaged:
            # Of one account; the others are told.
            accounts.append(damaged(account.id, utc_now()))
    return StatusReport(accounts=tuple(accounts))


def _draw(report: "StatusReport", *, over: int) -> int:
    """Print the report, on a terminal over the one before; how many lines it has."""
    from agent_reader.commands.status_report import lines  # noqa: PLC0415 - heavy

    text = [line for account in report.accounts for line in lines(account, utc_now())]
    if over and sys.stdout.isatty():
        typer.echo(_UP.format(over), nl=False)
    typer.echo("\n".join(text))
    return len(text)
