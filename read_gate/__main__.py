"""The command line: `read-gate serve`, `check`, and consent by OAuth."""

import logging
import sys
from typing import Final

import typer

from read_gate.config import DEFAULT_PATH, GateSettings
from shared.command_line import Config, run_program
from shared.oauth_command import oauth_app
from shared.settings import load_settings

app = typer.Typer(
    help="The gate: passes on what reads mail, and holds the login that could do more.", no_args_is_help=True
)
app.add_typer(oauth_app(lambda path: load_settings(path, GateSettings).accounts, DEFAULT_PATH), name="oauth")

_FAILED: Final = 1


def main() -> None:
    """Run a command of `read-gate`."""
    run_program(app, "read-gate")


@app.command()
def serve(config: Config = DEFAULT_PATH) -> None:
    """Pass on what reads, until stopped."""
    settings = load_settings(config, GateSettings)
    import structlog  # noqa: PLC0415 - heavy

    from read_gate.gate import serve as run  # noqa: PLC0415 - heavy

    log = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    run(settings, log)


@app.command()
def check(config: Config = DEFAULT_PATH) -> None:
    """Read the settings, sign in at each mail server once, and say whether it worked."""
    settings = load_settings(config, GateSettings)
    from shared.imap_login import ImapFailure, connect  # noqa: PLC0415 - heavy
    from shared.reader_verbs import READER_TABLE  # noqa: PLC0415 - heavy

    failed = False
    for account in settings.accounts:
        account.local_secret()
        try:
            connect(account, READER_TABLE).close_connection()
        except ImapFailure as failure:
            failed = True
            print(f"{account.id}: {failure.code}: {failure.detail}\n  {failure.fix}", file=sys.stderr)
        else:
            print(f"{account.id}: the login works")
    raise typer.Exit(_FAILED if failed else 0)


if __name__ == "__main__":
    main()
