"""The command `setup`: asks for the read login, tries it, and writes the configuration. It changes no mailbox."""

import contextlib
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_reader.config import ReaderSettings
from shared.command_line import MISTAKE_STATUS
from shared.dialogue import Dialogue, at_terminal, shown, toml_string, write_configuration
from shared.imap_login import ImapFailure, ImapLogin
from shared.login_questions import ask_login, login_toml
from shared.settings import ConfigurationError, settings_from

_MOST_NAMES_SHOWN: Final = 60


def setup(
    output: Annotated[str, typer.Option(help="Where to write reader.toml; - for standard output.")] = "-",
    answers: Annotated[Path | None, typer.Option(help="Answers as TOML, instead of asking.", metavar="FILE")] = None,
    secret_file: Annotated[Path | None, typer.Option(help="The file with the password of the read login.")] = None,
    secret_credential: Annotated[str | None, typer.Option(help="Or the systemd credential that holds it.")] = None,
    index: Annotated[Path, typer.Option(help="The folder of the index.")] = Path("/var/lib/agent-reader"),
    socket: Annotated[Path, typer.Option(help="The private socket.")] = Path("/run/mailwarrant/reader.sock"),
    executor_uid: Annotated[int | None, typer.Option(help="The uid of change-executor.")] = None,
) -> None:
    """Ask for the mail server and the read login, try them, and write the configuration."""
    try:
        dialogue = at_terminal(answers)
        login_id = dialogue.text("id", "A short name for the account (a-z, 0-9)", default="mail")
        login, names = ask_login(dialogue, login_id, _mailboxes, _secret(dialogue, secret_file, secret_credential))
        dialogue.say(f"The login works and sees {len(names)} mailboxes:")
        for name in names[:_MOST_NAMES_SHOWN]:
            dialogue.say(f"  {shown(name)}")
        chosen = _chosen(dialogue, names)
        text = _written(login, chosen, index, socket, executor_uid)
        # What was written is what will be read.
        settings_from(tomllib.loads(text), ReaderSettings, "what was asked")
        write_configuration(output, text)
        dialogue.say(
            "Read-only is kept by this program. Whether the server keeps it too: sudo mailwarrant-doctor --probe-rights"
        )
    except (ConfigurationError, ImapFailure) as error:
        typer.echo(f"agent-reader setup: {error}", err=True)
        raise typer.Exit(MISTAKE_STATUS) from None


def _mailboxes(login: ImapLogin) -> list[str]:
    from agent_reader.errors import Refused  # noqa: PLC0415 - heavy
    from agent_reader.imap.session import ReadOnlySession  # noqa: PLC0415 - heavy

    with contextlib.closing(ReadOnlySession.open(login)) as session:
        try:
            listing = session.list_mailboxes()
        except Refused as refused:
            raise refused.as_failure(login) from None
    return sorted(each.name for each in listing if "\\noselect" not in {flag.lower() for flag in each.attributes})


def _secret(dialogue: Dialogue, file: Path | None, credential: str | None) -> dict[str, Any]:
    if credential is not None:
        return {"secret_credential": credential}
    return {"secret_file": str(file or dialogue.text("secret_file", "The file with this login's password (mode 0400)"))}


def _chosen(dialogue: Dialogue, names: list[str]) -> list[str] | None:
    def wrong(given: str) -> str | None:
        unknown = [each for each in _split(given) if each not in names]
        return None if given == "all" or not unknown else f"not among them: {shown(', '.join(unknown))}"

    given = dialogue.text("mailboxes", "Which may agents read? Names with commas, or all", default="all", check=wrong)
    return None if given == "all" else _split(given)


def _split(given: str) -> list[str]:
    return [name.strip() for name in given.split(",") if name.strip()]


def _written(login: ImapLogin, mailboxes: list[str] | None, index: Path, socket: Path, executor_uid: int | None) -> str:
    lines = [
        "# Written by `agent-reader setup`. deploy/examples/reader.toml shows every key with its meaning.",
        "[server]",
        f"socket = {toml_string(str(socket))}",
        *([] if executor_uid is None else [f"executor_uid = {executor_uid}"]),
        "",
        "[store]",
        f"url = {toml_string(f'sqlite:///{index}')}",
        "",
        "[[accounts]]",
        login_toml(login),
    ]
    if mailboxes is not None:
        lines.append(f"mailboxes = [{', '.join(toml_string(name) for name in mailboxes)}]")
    return "\n".join(lines) + "\n"
