"""The options that the agent's own commands have in common: where the houses are, and which files hold the tokens.

Tokens come from files alone: an argument is seen by every user of the machine, and clients keep their settings in
files that are copied around. The environment may name the files.
"""

from pathlib import Path
from typing import Annotated

import typer

from agent_reader.relay.endpoint import Endpoint
from shared.settings import ConfigurationError, read_secret
from shared.tokens import TokenKind, parse_token

READER_URL = "http://127.0.0.1:8620"
INTAKE_URL = "http://127.0.0.1:8621"

TokenFile = Annotated[
    Path, typer.Option(envvar="MAILWARRANT_TOKEN_FILE", help="The file with the agent's reader token (mwr_...).")
]
ProposerTokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="MAILWARRANT_PROPOSER_TOKEN_FILE",
        help="The file with the agent's proposer token (mwp_...); without it nothing is proposed or told of proposals.",
    ),
]
ReaderUrl = Annotated[str, typer.Option(envvar="MAILWARRANT_READER_URL", help="The reader's address.")]
IntakeUrl = Annotated[str, typer.Option(envvar="MAILWARRANT_INTAKE_URL", help="The intake's address.")]


def reader_at(url: str, token_file: Path) -> Endpoint:
    """Return the reader with the agent's reader token. Raises `ConfigurationError`."""
    return Endpoint("reader", url, _token(token_file, TokenKind.READER))


def intake_at(url: str, token_file: Path) -> Endpoint:
    """Return the executor's intake with the agent's proposer token. Raises `ConfigurationError`."""
    return Endpoint("executor", url, _token(token_file, TokenKind.PROPOSER))


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
