"""`agent-reader client-config`: what an MCP client has to be told to start the relay, in each client's own form.

No token is printed: the relay reads both from files of the agent's user.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

_NAME: Final = "mailwarrant"

# The relay takes a second; Codex's own ten are short where a machine has much to do, and then it does not start at all.
_CODEX_WAITS_SECONDS: Final = 30


class ClientKind(StrEnum):
    """The clients whose form is known; `json` is the form that most others take."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    VS_CODE = "vscode"
    CURSOR = "cursor"
    GEMINI_CLI = "gemini-cli"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class RelayCommand:
    """How the relay is started; paths are whole. Addresses are None where they are the usual ones."""

    program: Path
    token_file: Path
    proposer_token_file: Path | None
    reader_url: str | None = None
    intake_url: str | None = None

    def arguments(self) -> list[str]:
        """Return the arguments after the program."""
        options = {
            "--token-file": self.token_file,
            "--proposer-token-file": self.proposer_token_file,
            "--reader-url": self.reader_url,
            "--intake-url": self.intake_url,
        }
        given = [(name, str(value)) for name, value in options.items() if value is not None]
        return ["mcp", *(each for pair in given for each in pair)]


def client_config(kind: ClientKind, command: RelayCommand) -> tuple[str, str]:
    """Return a sentence that says where the configuration goes, and the configuration."""
    where, form = _FORMS[kind]
    return where, form(command)


def _entry(command: RelayCommand) -> dict[str, object]:
    return {"command": str(command.program), "args": command.arguments()}


def _servers(command: RelayCommand) -> str:
    return json.dumps({"mcpServers": {_NAME: _entry(command)}}, indent=2)


def _vs_code(command: RelayCommand) -> str:
    return json.dumps({"servers": {_NAME: {"type": "stdio"} | _entry(command)}}, indent=2)


def _claude_code(command: RelayCommand) -> str:
    # Of the user: else it would be there in the folder alone in which the line was run.
    add = ["claude", "mcp", "add", "--scope", "user", _NAME, "--"]
    return shlex.join([*add, str(command.program), *command.arguments()])


def _codex(command: RelayCommand) -> str:
    # TOML's basic strings escape as JSON's do.
    arguments = ", ".join(json.dumps(each) for each in command.arguments())
    lines = (
        f"[mcp_servers.{_NAME}]",
        f"command = {json.dumps(str(command.program))}",
        f"args = [{arguments}]",
        # Else Codex asks its model at once, and of a relay that is still starting it has no tools.
        "required = true",
        f"startup_timeout_sec = {_CODEX_WAITS_SECONDS}",
    )
    return "\n".join(lines)


def _plain(command: RelayCommand) -> str:
    return json.dumps({_NAME: _entry(command)}, indent=2)


_FORMS: Final[Mapping[ClientKind, tuple[str, Callable[[RelayCommand], str]]]] = {
    ClientKind.CLAUDE_CODE: ("Run this once; `claude mcp list` then shows it.", _claude_code),
    ClientKind.CLAUDE_DESKTOP: (
        "Into claude_desktop_config.json (Settings, Developer, Edit Config); then start Claude anew.",
        _servers,
    ),
    ClientKind.CODEX: ("Into ~/.codex/config.toml, at its end; `codex mcp list` then shows it.", _codex),
    ClientKind.VS_CODE: ("Into .vscode/mcp.json of the workspace, or `MCP: Open User Configuration`.", _vs_code),
    ClientKind.CURSOR: ("Into ~/.cursor/mcp.json.", _servers),
    ClientKind.GEMINI_CLI: (
        "Into ~/.gemini/settings.json, beside what is there; `gemini mcp list` shows it, in folders that are trusted.",
        _servers,
    ),
    ClientKind.JSON: ("The server by its name: a command and its arguments, over standard input and output.", _plain),
}
