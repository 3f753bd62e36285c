"""`agent-reader client-config --http`: what an MCP client has to be told to speak with the reader's daemon itself.

The form names an environment variable and holds no token; VS Code asks for it and keeps it. There are reading tools
alone behind that address, so a proposer token has no place here.
"""

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from agent_reader.relay.client_config import ClientKind

TOKEN_VARIABLE: Final = "MAILWARRANT_TOKEN"  # noqa: S105 - the name of a variable
_NAME: Final = "mailwarrant"
_PATH: Final = "/mcp"


def http_config(kind: ClientKind, reader_url: str) -> tuple[str, str] | None:
    """Return where the configuration goes, in a sentence, and the configuration; None where the client has none."""
    found = _FORMS.get(kind)
    if found is None:
        return None
    where, form = found
    return where, form(reader_url.rstrip("/") + _PATH)


def _bearer(variable: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {variable}"}


def _named(entry: Mapping[str, object], under: str | None = "mcpServers") -> str:
    servers: dict[str, object] = {_NAME: entry}
    return json.dumps(servers if under is None else {under: servers}, indent=2)


def _claude_code(url: str) -> str:
    # Of the user: a project's servers wait for an approval. The variable stays one in every scope.
    add = ["claude", "mcp", "add", "--scope", "user", "--transport", "http", _NAME, url]
    return shlex.join([*add, "--header", f"Authorization: Bearer ${{{TOKEN_VARIABLE}}}"])


def _codex(url: str) -> str:
    # TOML's basic strings escape as JSON's do.
    return f"[mcp_servers.{_NAME}]\nurl = {json.dumps(url)}\nbearer_token_env_var = {json.dumps(TOKEN_VARIABLE)}"


def _vs_code(url: str) -> str:
    asked = {"type": "promptString", "id": _NAME, "description": "Mailwarrant reader token (mwr_...)", "password": True}
    entry = {"type": "http", "url": url, "headers": _bearer(f"${{input:{_NAME}}}")}
    return json.dumps({"inputs": [asked], "servers": {_NAME: entry}}, indent=2)


def _cursor(url: str) -> str:
    return _named({"url": url, "headers": _bearer(f"${{env:{TOKEN_VARIABLE}}}")})


def _gemini_cli(url: str) -> str:
    # `url` would be the older transport of server-sent events.
    return _named({"httpUrl": url, "headers": _bearer(f"${TOKEN_VARIABLE}")})


def _plain(url: str) -> str:
    return _named({"type": "http", "url": url, "headers": _bearer(f"${{{TOKEN_VARIABLE}}}")}, None)


_VARIABLE: Final = f"{TOKEN_VARIABLE} in the client's environment has to hold the reader token."
_FORMS: Final[Mapping[ClientKind, tuple[str, Callable[[str], str]]]] = {
    ClientKind.CLAUDE_CODE: (f"Run this once; {_VARIABLE}", _claude_code),
    ClientKind.CODEX: (f"Into ~/.codex/config.toml; {_VARIABLE}", _codex),
    ClientKind.VS_CODE: (
        "Into .vscode/mcp.json of the workspace, or `MCP: Open User Configuration`; it asks for the reader token once.",
        _vs_code,
    ),
    ClientKind.CURSOR: (f"Into ~/.cursor/mcp.json; {_VARIABLE}", _cursor),
    ClientKind.GEMINI_CLI: (
        f"Into ~/.gemini/settings.json, beside what is there, for folders that Gemini CLI trusts; {_VARIABLE}",
        _gemini_cli,
    ),
    ClientKind.JSON: (f"The server by its name, over streamable HTTP; {_VARIABLE}", _plain),
}
