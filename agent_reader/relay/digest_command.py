"""`agent-reader digest`: what came, what waits for an answer, what became of proposals; as the agent's own user."""

import json
import secrets
import sys
from typing import Annotated, Final

import typer

from agent_reader.relay.digest import for_terminal, gather, write_for_model
from agent_reader.relay.endpoint import Refused, Unreachable
from agent_reader.relay.options import (
    INTAKE_URL,
    READER_URL,
    IntakeUrl,
    ProposerTokenFile,
    ReaderUrl,
    TokenFile,
    intake_at,
    reader_at,
)
from agent_reader.tool_answers.sheet import Sheet
from shared.command_line import run_program
from shared.time_and_chance import utc_now

_FAILED: Final = 1

app = typer.Typer(add_completion=False)


@app.command()
def digest(
    token_file: TokenFile,
    proposer_token_file: ProposerTokenFile = None,
    reader_url: ReaderUrl = READER_URL,
    intake_url: IntakeUrl = INTAKE_URL,
    peek: Annotated[bool, typer.Option("--peek", help="Leave the agent's place: tell the same again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for programs.")] = False,
) -> None:
    """Tell what came since this agent's last look, what waits for an answer, and what became of its proposals.

    The place is that of whats_new. On a terminal it is text for a person; elsewhere it is framed for a model.
    """
    reader = reader_at(reader_url, token_file)
    intake = None if proposer_token_file is None else intake_at(intake_url, proposer_token_file)
    try:
        found = gather(reader, intake, utc_now(), peek=peek)
    except Unreachable as error:
        typer.echo(f"agent-reader digest: the reader did not answer ({error.why}). Is it running?", err=True)
        raise typer.Exit(_FAILED) from None
    except Refused as error:
        typer.echo(f"agent-reader digest: {error}", err=True)
        raise typer.Exit(_FAILED) from None
    if as_json:
        typer.echo(json.dumps(found.document(), ensure_ascii=False, indent=1))
    elif sys.stdout.isatty():
        typer.echo(for_terminal(found))
    else:
        sheet = Sheet()
        write_for_model(sheet, found)
        typer.echo(sheet.text(secrets.token_bytes))


if __name__ == "__main__":
    run_program(app, "agent-reader digest")
