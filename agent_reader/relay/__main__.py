"""`agent-reader mcp`: the options of the relay. Run as `python -m agent_reader.relay` it is the same.

Tokens come from files alone: an argument is seen by every user of the machine, and clients keep their settings in
files that are copied around. The environment may name the files.
"""

import secrets
import sys
from pathlib import Path
from typing import Annotated

import typer

from agent_reader.relay.endpoint import Endpoint
from agent_reader.relay.proposals import ProposalTools
from agent_reader.relay.relay import Relay
from agent_reader.relay.stdio import run, wire
from shared.settings import ConfigurationError, read_secret
from shared.tokens import TokenKind, parse_token

_WRONG = 2

READER_URL = "http://127.0.0.1:8620"
INTAKE_URL = "http://127.0.0.1:8621"

app = typer.Typer(add_completion=False)


@app.command()
def mcp(
    token_file: Annotated[
        Path,
        typer.Option(envvar="MAILWARRANT_TOKEN_FILE", help="The file with the agent's reader token (mwr_...)."),
    ],
    proposer_token_file: Annotated[
        Path | None,
        typer.Option(
            envvar="MAILWARRANT_PROPOSER_TOKEN_FILE",
            help="The file with the agent's proposer token (mwp_...); without it there is no propose_move.",
        ),
    ] = None,
    reader_url: Annotated[
        str, typer.Option(envvar="MAILWARRANT_READER_URL", help="The reader's address.")
    ] = READER_URL,
    intake_url: Annotated[
        str, typer.Option(envvar="MAILWARRANT_INTAKE_URL", help="The intake's address.")
    ] = INTAKE_URL,
) -> None:
    """Speak MCP over standard input and output, as the agent's own user. MCP clients start this."""
    reader = Endpoint("reader", reader_url, _token(token_file, TokenKind.READER))
    tools = None
    if proposer_token_file is not None:
        intake = Endpoint("executor", intake_url, _token(proposer_token_file, TokenKind.PROPOSER))
        tools = ProposalTools(intake, secrets.token_bytes)
    with wire() as (lines, answers):
        run(Relay(reader, tools), lines, answers)


def _token(path: Path, kind: TokenKind) -> str:
    text = read_secret(path, None, f"the {kind.name.lower()} token").get_secret_value()
    token = parse_token(text)
    if token is None or token.kind is not kind:
        raise ConfigurationError(
            str(path),
            f"holds no {kind.name.lower()} token ({kind.value}_...).",
            "Write the token into it as it was printed, on one line. Each of the two tokens has a file of its own.",
        )
    return token.text


def main() -> None:
    """Run the relay; a mistake in its settings ends with exit status 2 and one clear message."""
    try:
        app(prog_name="agent-reader mcp")
    except ConfigurationError as error:
        print(f"agent-reader mcp: {error}", file=sys.stderr)
        sys.exit(_WRONG)


if __name__ == "__main__":
    main()
