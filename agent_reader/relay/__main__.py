"""`agent-reader mcp`: the options of the relay. Run as `python -m agent_reader.relay` it is the same."""

import secrets

import typer

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
from agent_reader.relay.proposals import ProposalTools
from agent_reader.relay.relay import Relay
from agent_reader.relay.stdio import run, wire
from shared.command_line import run_program

app = typer.Typer(add_completion=False)


@app.command()
def mcp(
    token_file: TokenFile,
    proposer_token_file: ProposerTokenFile = None,
    reader_url: ReaderUrl = READER_URL,
    intake_url: IntakeUrl = INTAKE_URL,
) -> None:
    """Speak MCP over standard input and output, as the agent's own user. MCP clients start this."""
    reader = reader_at(reader_url, token_file)
    tools = None
    if proposer_token_file is not None:
        tools = ProposalTools(intake_at(intake_url, proposer_token_file), secrets.token_bytes, reader)
    with wire() as (lines, answers):
        run(Relay(reader, tools), lines, answers)


if __name__ == "__main__":
    run_program(app, "agent-reader mcp")
