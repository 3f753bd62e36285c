"""The command `oauth login`, alike in both programs: each house has a consent of its own."""

import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import typer

from shared.command_line import MISTAKE_STATUS, Config
from shared.imap_login import ImapLogin
from shared.oauth import OAuth, OAuthFailure, TokenFile
from shared.oauth_sign_in import sign_in_by_browser, sign_in_by_device
from shared.settings import ConfigurationError


def oauth_app(logins: Callable[[Path], Iterable[ImapLogin]], default_path: Path) -> typer.Typer:
    """Return the `oauth` commands of a program; `logins` reads the mail logins out of its configuration file."""
    app = typer.Typer(help="Signing in at a mail provider by consent instead of a password.", no_args_is_help=True)

    @app.callback()
    def oauth() -> None:
        """Keep `login` a command of its own, though it is the only one."""

    @app.command()
    def login(
        login_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the mail login in the configuration.")],
        config: Config = default_path,
        device: Annotated[
            bool | None,
            typer.Option("--device/--browser", help="By a code entered anywhere, or by a browser on this machine."),
        ] = None,
        port: Annotated[int, typer.Option(min=0, max=65535, help="With --browser: the port to come back to.")] = 0,
    ) -> None:
        """Sign in at the provider once, as the user that the program runs as, and keep the consent."""
        try:
            settings = _oauth_of(login_id, logins(config), config)
            _sign_in(settings, bool(settings.endpoints.device) if device is None else device, port)
        except (ConfigurationError, OAuthFailure) as error:
            typer.echo(f"oauth login: {error}", err=True)
            raise typer.Exit(MISTAKE_STATUS) from None
        typer.echo(f"Signed in; the consent is kept in {settings.token_file}.")

    return app


def _sign_in(oauth: OAuth, by_device: bool, port: int) -> None:
    file = TokenFile(oauth.token_file)
    # Held all along: the running program would renew what is being replaced.
    with file.locked():
        file.write(
            sign_in_by_device(oauth, typer.echo, time.time, time.sleep)
            if by_device
            else sign_in_by_browser(oauth, typer.echo, time.time, secrets.token_bytes, port)
        )


def _oauth_of(login_id: str, logins: Iterable[ImapLogin], config: Path) -> OAuth:
    found = next((login for login in logins if login.id == login_id), None)
    if found is None:
        raise ConfigurationError(str(config), f"there is no login `{login_id[:40]}`.", "Give an id that it names.")
    if found.oauth is None:
        raise ConfigurationError(
            str(config), f"the login `{login_id}` has no `oauth` table.", "Add one: deploy/examples/ shows its keys."
        )
    return found.oauth
