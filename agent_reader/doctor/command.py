"""The command `doctor`: what of the installation keeps its promise, and what does not."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from agent_reader.config import DEFAULT_PATH, ReaderSettings
from agent_reader.doctor.rights import Finding, overall, read_findings, write_findings
from shared.settings import load_settings


def doctor(
    config: Annotated[Path, typer.Option("--config", help="The configuration file.", metavar="PATH")] = DEFAULT_PATH,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe-rights", help="Ask the mail server: SELECT each mailbox once, which ends \\Recent there."
        ),
    ] = False,
) -> None:
    """Say who keeps each account's login from writing: the server, or this program only."""
    settings = load_settings(config, ReaderSettings)
    folder = settings.store.folder
    failed = False
    if probe:
        from agent_reader.doctor.probe_rights import probe_rights  # noqa: PLC0415 - heavy
        from agent_reader.listening import check_owner  # noqa: PLC0415 - heavy
        from shared.imap_login import ImapFailure  # noqa: PLC0415 - heavy

        check_owner(folder)
        for account in settings.accounts:
            try:
                found = probe_rights(account, account.mailboxes, lambda: datetime.now(UTC))
            except ImapFailure as failure:
                typer.echo(f"{account.id}: {failure.code}: {failure.detail}\n  {failure.fix}", err=True)
                failed = True
            else:
                write_findings(folder, account.id, found)
    for account in settings.accounts:
        for line in _lines(account.id, read_findings(folder, account.id)):
            typer.echo(line)
    if failed:
        raise typer.Exit(1)


def _lines(account_id: str, findings: dict[str, Finding]) -> list[str]:
    if not findings:
        return [f"{account_id}: read-only by this program only: the server was never asked (--probe-rights asks it)"]
    return [
        f"{account_id}: read-only {overall(findings).value}",
        *(
            f"  {found.at:%Y-%m-%d}: {_shown(name)}: {found.enforcement.value}"
            for name, found in sorted(findings.items())
        ),
    ]


def _shown(untrusted_name: str) -> str:
    # A mailbox name may hold what a terminal obeys.
    return "".join(character if character.isprintable() else "?" for character in untrusted_name)
