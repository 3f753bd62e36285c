"""The command `doctor`: what of the installation keeps its promise, and what does not."""

from pathlib import Path
from typing import Annotated, Final

import typer

from change_executor.command_line import DEFAULT_CONFIG
from shared.command_line import MISTAKE_STATUS, Config
from shared.doctor.finding import Report
from shared.doctor.telling import Part, house_user, look, tell
from shared.settings import ConfigurationError, load_settings
from shared.time_and_chance import utc_now

_UNITS: Final = Path("/etc/systemd/system")
# Its .service and its .timer.
_COPYING: Final = "change-executor-backup"


def doctor(
    config: Config = DEFAULT_CONFIG,
    as_json: Annotated[bool, typer.Option("--json/--text", help="One line of JSON, or text.")] = False,
    part: Annotated[Part, typer.Option(help="Files, users and units; or login and journal; or all.")] = Part.ALL,
    user: Annotated[str | None, typer.Option(help="Whom the executor runs as, if not change-executor.")] = None,
    agent: Annotated[list[str] | None, typer.Option(help="A user that an agent runs as; more than once.")] = None,
    copies: Annotated[
        Path | None, typer.Option("--backups", help="Where copies are, if not where the timer puts them.")
    ] = None,
    units: Annotated[Path, typer.Option(help="Where the unit files are.", hidden=True)] = _UNITS,
) -> None:
    """Say what is wrong here, why it matters, and what mends it; status 0 nothing, 1 something, 2 not all seen."""
    from change_executor.config import ExecutorSettings  # noqa: PLC0415 - with the command

    try:
        settings = load_settings(config, ExecutorSettings)
    except ConfigurationError as error:
        typer.echo(f"change-executor: {error}", err=True)
        raise typer.Exit(MISTAKE_STATUS) from None
    owner = house_user(user, "change-executor")

    def machine() -> Report:
        from change_executor.doctor.installed import executor_installation  # noqa: PLC0415 - heavy
        from shared.doctor.machine import look_at_machine  # noqa: PLC0415 - heavy

        return look_at_machine(executor_installation(settings, config, owner, units, tuple(agent or ())))

    def program() -> Report:
        from change_executor.doctor.program import look_at_program  # noqa: PLC0415 - heavy
        from shared.doctor.copying import copying_by  # noqa: PLC0415 - heavy

        return look_at_program(settings, utc_now, copying_by(units, _COPYING, copies))

    tell(look(part, owner, machine, program), "change-executor", as_json=as_json)
