"""The command line: `agent-reader serve`, tokens, the read log, and how fresh the index is."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from agent_reader.commands.backup import backup, restore
from agent_reader.commands.downgrade import downgrade
from agent_reader.commands.forget import forget
from agent_reader.commands.reads import reads_app
from agent_reader.commands.setup import setup
from agent_reader.commands.status import status
from agent_reader.commands.tokens import token_app
from agent_reader.config import DEFAULT_PATH, ReaderSettings
from agent_reader.doctor.command import doctor
from agent_reader.relay.client_config import ClientKind, RelayCommand, client_config
from agent_reader.relay.http_config import http_config
from agent_reader.relay.options import READER_URL
from shared.command_line import Config, run_program
from shared.oauth_command import oauth_app
from shared.settings import ConfigurationError, load_settings

# Heavy imports (the store, the servers) happen inside the commands that need them: --help answers at once.
app = typer.Typer(help="The reader: an agent may look at a mailbox, and cannot change it.", no_args_is_help=True)
app.add_typer(token_app, name="token")
app.add_typer(reads_app, name="reads")
app.add_typer(oauth_app(lambda path: load_settings(path, ReaderSettings).accounts, DEFAULT_PATH), name="oauth")
app.command()(backup)
app.command()(restore)
app.command()(downgrade)
app.command()(doctor)
app.command()(setup)
app.command()(status)
app.command()(forget)

# Never the modules of the folder that an agent happens to work in: a project may hold a `typer.py` or an `mcp.py`.
_AGAIN: Final = (sys.executable, "-I" if sys.flags.isolated else "-P")


def main() -> None:
    """Run a command of `agent-reader`."""
    run_program(app, "agent-reader")


@app.command()
def serve(config: Config = DEFAULT_PATH) -> None:
    """Read mail, and answer agents until stopped."""
    settings = load_settings(config, ReaderSettings)
    from agent_reader.app import serve as run  # noqa: PLC0415 - heavy
    from agent_reader.logs import new_log, pass_on_warnings  # noqa: PLC0415 - heavy

    log = new_log(sys.stderr)
    pass_on_warnings(log)
    run(settings, log)


@app.command("parse")
def parse_message(
    file: Annotated[str, typer.Argument(metavar="FILE.eml", help="A file with one message; - for standard input.")],
    text: Annotated[bool, typer.Option("--text", help="The fenced text that an agent would get, not JSON.")] = False,
    nested: Annotated[bool, typer.Option("--nested", help="The messages inside the message too.")] = False,
    whole: Annotated[bool, typer.Option("--whole", help="With --text: quotes and signature too.")] = False,
    attachments: Annotated[bool, typer.Option("--attachments", help="With --text: attachments as text too.")] = False,
    defang: Annotated[bool, typer.Option("--defang", help="With --text: links that nothing follows.")] = False,
    authserv_id: Annotated[
        str | None, typer.Option(help="The mail server whose Authentication-Results are believed (RFC 8601).")
    ] = None,
) -> None:
    """Print a message as it is read: JSON with all that its octets tell, or with --text what an agent gets."""
    import secrets  # noqa: PLC0415 - with the rest

    from agent_reader.agent_text import Wanted  # noqa: PLC0415 - heavy
    from agent_reader.commands.parse import message_json, message_text, read_octets, write  # noqa: PLC0415 - heavy

    octets = read_octets(file, sys.stdin.buffer)
    if text:
        wanted = Wanted(whole=whole, attachments=attachments, defanged=defang, authserv_id=authserv_id)
        write(message_text(octets, wanted, nested=nested, random_octets=secrets.token_bytes))
    else:
        write(message_json(octets, authserv_id=authserv_id, nested=nested))


@app.command("mcp", add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def mcp_relay(context: typer.Context) -> None:
    """Speak MCP over standard input and output, as the agent's own user; MCP clients start this."""
    # A process of its own: the relay has no code that speaks IMAP in its memory either.
    os.execv(sys.executable, [*_AGAIN, "-m", "agent_reader.relay", *context.args])  # noqa: S606 - no shell


@app.command(
    "digest", add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def digest(context: typer.Context) -> None:
    """Tell what came, what waits for an answer and what became of proposals, as the agent's own user."""
    os.execv(sys.executable, [*_AGAIN, "-m", "agent_reader.relay.digest_command", *context.args])  # noqa: S606 - no shell


@app.command(
    "watch", add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def watch(context: typer.Context) -> None:
    """Wake a program when mail arrives, as the agent's own user."""
    os.execv(sys.executable, [*_AGAIN, "-m", "agent_reader.relay.watch_command", *context.args])  # noqa: S606 - no shell


@app.command("client-config")
def print_client_config(
    client: Annotated[ClientKind, typer.Argument(help="Whose form.")] = ClientKind.JSON,
    token_file: Annotated[Path, typer.Option(help="Where the agent's user keeps the reader token.")] = Path(
        "~/.config/mailwarrant/reader-token"
    ),
    proposer_token_file: Annotated[
        Path | None, typer.Option(help="Where it keeps the proposer token; left out, the agent only reads.")
    ] = None,
    reader_url: Annotated[str | None, typer.Option(help="The reader's address, if it is not the usual one.")] = None,
    intake_url: Annotated[str | None, typer.Option(help="The intake's address, if it is not the usual one.")] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Speak with the daemon itself: the reading tools alone.")
    ] = False,
) -> None:
    """Print what an MCP client has to be told to start `agent-reader mcp`; no token is in it."""
    if http:
        _print_form(_over_http(client, reader_url, proposes=proposer_token_file is not None))
        return
    command = RelayCommand(
        program=Path(sys.argv[0]).absolute(),
        token_file=token_file.expanduser().absolute(),
        proposer_token_file=None if proposer_token_file is None else proposer_token_file.expanduser().absolute(),
        reader_url=reader_url,
        intake_url=intake_url,
    )
    _print_form(client_config(client, command))


def _over_http(client: ClientKind, reader_url: str | None, *, proposes: bool) -> tuple[str, str]:
    found = http_config(client, reader_url or READER_URL)
    if found is None:
        raise ConfigurationError("--http", f"{client} starts programs only.", "Leave --http away.")
    if proposes:
        raise ConfigurationError(
            "--http", "The reader's daemon never takes a proposer token.", "Leave --http away, and the agent proposes."
        )
    return found


def _print_form(found: tuple[str, str]) -> None:
    where, form = found
    # Apart, so that the form alone can go into a file.
    print(where, file=sys.stderr)
    print(form)


if __name__ == "__main__":
    main()
