"""The command `doctor`: what of the installation keeps its promise, and what does not."""

from pathlib import Path
from typing import Annotated, Final

import typer

from agent_reader.config import DEFAULT_PATH, ReaderSettings
from agent_reader.doctor.rights import write_findings
from shared.command_line import Config
from shared.doctor.finding import Fault, Looking, Report
from shared.doctor.telling import Part, house_user, look, tell
from shared.settings import load_settings
from shared.time_and_chance import utc_now

_UNITS: Final = Path("/etc/systemd/system")
# Its .service and its .timer.
_COPYING: Final = "agent-reader-backup"


def doctor(
    config: Config = DEFAULT_PATH,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe-rights", help="Ask the mail server: SELECT each mailbox once, which ends \\Recent there."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json/--text", help="One line of JSON, or text.")] = False,
    part: Annotated[Part, typer.Option(help="Files, users and units; or logins and what is kept; or all.")] = Part.ALL,
    user: Annotated[str | None, typer.Option(help="Whom the reader runs as, where it is not agent-reader.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="A user that an agent runs as; more than once.")] = None,
    copies: Annotated[
        Path | None, typer.Option("--backups", help="Where copies are, if not where the timer puts them.")
    ] = None,
    units: Annotated[Path, typer.Option(help="Where the unit files are.", hidden=True)] = _UNITS,
) -> None:
    """Say what is wrong here, why it matters, and what mends it; status 0 nothing, 1 something, 2 not all seen."""
    settings = load_settings(config, ReaderSettings)
    owner = house_user(user, "agent-reader")

    def machine() -> Report:
        from agent_reader.doctor.installed import reader_installation  # noqa: PLC0415 - heavy
        from shared.doctor.machine import look_at_machine  # noqa: PLC0415 - heavy

        return look_at_machine(reader_installation(settings, config, owner, units, tuple(agent or ())))

    def program() -> Report:
        from agent_reader.doctor.program import look_at_program  # noqa: PLC0415 - heavy
        from agent_reader.doctor.reading import look_at_reading  # noqa: PLC0415 - heavy
        from shared.doctor.copying import copying_by  # noqa: PLC0415 - heavy

        looking = Looking()
        if probe:
            _probe(settings, looking)
        looking.add(look_at_program(settings, utc_now, copying_by(units, _COPYING, copies)))
        looking.add(look_at_reading())
        return looking.report()

    tell(look(part, owner, machine, program), "agent-reader", as_json=as_json)


def _probe(settings: ReaderSettings, looking: Looking) -> None:
    from agent_reader.doctor.probe_rights import probe_rights  # noqa: PLC0415 - heavy
    from agent_reader.listening import check_owner  # noqa: PLC0415 - heavy
    from shared.imap_login import ImapFailure  # noqa: PLC0415 - heavy

    folder = settings.store.folder
    check_owner(folder)
    for account in settings.accounts:
        try:
            found = probe_rights(account, account.mailboxes, utc_now)
        except ImapFailure as failure:
            looking.find(Fault.LOGIN, f"{account.id}: {failure.code}: {failure.detail}", failure.fix)
        else:
            write_findings(folder, account.id, found)
