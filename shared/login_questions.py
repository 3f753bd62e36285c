"""What a set-up asks about a mail login, and the try that follows: until it works, or the person gives up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from shared.dialogue import Dialogue, toml_string
from shared.imap_login import ImapFailure, ImapLogin
from shared.login_refusals import provider_of

Found = TypeVar("Found")

_PORTS: Final = {"tls": "993", "starttls": "143", "none": "143"}
_TRIES: Final = 5


def ask_login(
    dialogue: Dialogue, login_id: str, try_out: Callable[[ImapLogin], Found], secret: dict[str, Any]
) -> tuple[ImapLogin, Found]:
    """Ask where and as whom to sign in, try it, and return the login with what the try found.

    `secret`: how the password comes (`secret_file`, `secret_command` or `secret_credential`). Raises
    `ConfigurationError`, and `ImapFailure` where nobody is there to mend what failed.
    """
    said: dict[str, str] = {}
    for _ in range(_TRIES):
        try:
            login = _asked(dialogue, login_id, secret, said)
        except ValidationError as error:
            dialogue.say(f"  {error.errors(include_url=False, include_input=False)[0]['msg']}")
            if not dialogue.is_attended:
                raise
            continue
        try:
            return login, try_out(login)
        except ImapFailure as failure:
            if not dialogue.is_attended:
                raise
            dialogue.say(f"  {failure.detail}\n  {failure.fix}")
            if failure.code == "login_refused" and _password_is_wrong(dialogue):
                raise
    raise ImapFailure("login_refused", "The login did not work.", "Start again when you know it.", retryable=False)


def _password_is_wrong(dialogue: Dialogue) -> bool:
    """Whether the person wants to give another password, which is not asked for here."""
    question = "Try with other answers (again), or end here to give another password (end)"
    return dialogue.choice("after_refusal", question, ("again", "end"), default="again") == "end"


def _asked(dialogue: Dialogue, login_id: str, secret: dict[str, Any], said: dict[str, str]) -> ImapLogin:
    """Ask for one login; what was `said` before is offered again."""
    host = said["host"] = dialogue.text("host", "IMAP server (host name)", default=said.get("host"))
    # Said before it is asked, not after it failed.
    if (provider := provider_of(host)) is not None:
        dialogue.say(f"  {provider.note}")
    tls = dialogue.choice(
        "tls", "Security: tls, starttls or none", ("tls", "starttls", "none"), default=said.get("tls", "tls")
    )
    said["tls"] = tls
    port = dialogue.text("port", "Port", default=_PORTS[tls], check=_port)
    user = said["user"] = dialogue.text("user", "User name of this login", default=said.get("user"))
    ca_file = dialogue.text("ca_file", "CA file of a private authority, - for none", default="-")
    return ImapLogin.model_validate(
        {"id": login_id, "host": host, "port": int(port), "tls": tls, "user": user, **secret}
        | ({} if ca_file == "-" else {"ca_file": ca_file})
    )


def _port(given: str) -> str | None:
    return None if given.isdecimal() and 1 <= int(given) <= 65_535 else "a number from 1 to 65535"  # noqa: PLR2004 - TCP


def login_toml(login: ImapLogin) -> str:
    """Return the lines of a login's table, without its header."""
    lines = [f"id = {toml_string(login.id)}", f"host = {toml_string(login.host)}", f"port = {login.port}"]
    lines += [f"tls = {toml_string(login.tls)}", f"user = {toml_string(login.user)}"]
    for key in ("secret_file", "secret_credential", "ca_file"):
        value = getattr(login, key)
        if isinstance(value, str | Path):
            lines.append(f"{key} = {toml_string(str(value))}")
    if login.secret_command is not None:
        lines.append(f"secret_command = [{', '.join(toml_string(word) for word in login.secret_command)}]")
    return "\n".join(lines)
