"""The published MCP conformance suite and the MCP inspector against both doors of the reader, on a sample mailbox.

`make mcp-conformance` installs them from npm and writes docs/mcp-conformance.md. Only the scenarios that ask a server
for what every server has are run: the others want tools of their own making (an image, a progress bar, a question to
the user) that a mailbox does not have.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.agent_reader.mcp.desk import desked
from tests.agent_reader.mcp.served import app_of, served

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

REPOSITORY: Final = Path(__file__).resolve().parents[2]
DOCUMENT: Final = REPOSITORY / "docs/mcp-conformance.md"

SCENARIOS: Final = {
    "2025-11-25": ("server-initialize", "ping", "tools-list", "prompts-list", "dns-rebinding-protection"),
    "2026-07-28": (
        "server-stateless",
        "tools-list",
        "prompts-list",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
    ),
}

INSPECTED: Final = (
    ("tools/list",),
    ("prompts/list",),
    ("prompts/get", "--prompt-name", "daily_triage"),
    ("tools/call", "--tool-name", "search_mail", "--tool-arg", "text=teapot", "--tool-arg", "limit=5"),
    ("tools/call", "--tool-name", "whats_new", "--tool-arg", "peek=true"),
)

# Checks that ask for what a mailbox does not have, and so are not testable here: the suite counts them as failed.
NOT_TESTABLE: Final = {
    "ServerRejectsUndeclaredCapability": "wants a test tool that asks the client for something",
    "MissingCapabilityHttp400": "wants the same test tool",
    "ResourcesListCachingHints": "there are no resources",
    "ResourcesTemplatesListCachingHints": "there are no resources",
}

_SECONDS: Final = 120.0
_FAILED: Final = re.compile(r"^  - (\w+): ", re.MULTILINE)
_CHECK: Final = re.compile(r"Passed: (\d+)/(\d+), (\d+) failed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the document."""

    tool: str
    revision: str
    what: str
    outcome: str
    passed: bool


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The app for a client that has no way to send a token: it gets one on the way in."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]}
        await app(scope, receive, send)

    return answer


async def output_of(command: Sequence[str]) -> tuple[int, str]:
    """The exit status and what a command wrote."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=REPOSITORY
    )
    async with asyncio.timeout(_SECONDS):
        written, _ = await process.communicate()
    return process.returncode or 0, written.decode("utf-8", "replace")


async def conformance(node: Path, modules: Path, address: str) -> list[Row]:
    """Run the scenarios of both revisions."""
    rows = []
    program = str(modules / ".bin/conformance")
    for revision, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            command = [str(node), program, "server", "--url", f"{address}/mcp", "--scenario", scenario]
            status, written = await output_of([*command, "--spec-version", revision])
            rows.append(judged(revision, scenario, status, written))
            if not rows[-1].passed:
                sys.stderr.write(written[-4_000:])
    return rows


def judged(revision: str, scenario: str, status: int, written: str) -> Row:
    """What a scenario came to; checks that cannot be tested here are named with their reason."""
    found = _CHECK.search(written)
    if found is None:
        return Row("conformance", revision, scenario, f"status {status}", passed=False)
    failed = _FAILED.findall(written.partition("=== Failed Checks ===")[2]) if int(found[3]) else []
    reasons = "".join(f"; {name}: {NOT_TESTABLE.get(name, 'FAILED')}" for name in failed)
    passed = len(failed) == int(found[3]) and set(failed) <= NOT_TESTABLE.keys()
    return Row("conformance", revision, scenario, f"{found[1]} of {found[2]} checks{reasons}", passed)


async def inspected(node: Path, modules: Path, relay: Sequence[str]) -> list[Row]:
    """Run the inspector over standard input and output, through the relay."""
    rows = []
    for method, *options in INSPECTED:
        command = [str(node), str(modules / ".bin/mcp-inspector"), "--cli", *relay, "--method", method, *options]
        status, written = await output_of(command)
        good = status == 0 and is_answer(written)
        rows.append(Row("inspector", "stdio", " ".join([method, *options]), "answers" if good else "fails", good))
        if not good:
            sys.stderr.write(written[-2_000:])
    return rows


def is_answer(written: str) -> bool:
    """Whether it is a result, and none that reports an error."""
    try:
        answer = json.loads(written)
    except ValueError:
        return False
    return isinstance(answer, dict) and not answer.get("isError", False)


def version_of(modules: Path, package: str) -> str:
    """The version of an installed package."""
    told: dict[str, str] = json.loads((modules / package / "package.json").read_text(encoding="utf-8"))
    return told["version"]


async def run(node: Path, modules: Path) -> list[Row]:
    """Run everything on a mailbox of three messages."""
    with tempfile.TemporaryDirectory() as folder, desked(Path(folder)) as standing:
        app = app_of(standing.desk, standing.house)
        token_file = Path(folder) / "token"
        token_file.touch(0o600)
        token_file.write_text(standing.house.token)
        async with served(with_token(app, standing.house.token)) as address:
            rows = await conformance(node, modules, address)
        async with served(app_of(standing.desk, standing.house)) as address:
            settings = {"MAILWARRANT_TOKEN_FILE": str(token_file), "MAILWARRANT_READER_URL": address}
            given = [each for name, value in settings.items() for each in ("-e", f"{name}={value}")]
            relay = [*given, sys.executable, "-m", "agent_reader.relay"]
            rows += await inspected(node, modules, relay)
    return rows


def document(rows: Sequence[Row], modules: Path) -> str:
    """The document that says what ran and what came of it."""
    versions = [version_of(modules, f"@modelcontextprotocol/{name}") for name in ("conformance", "inspector")]
    lines = [
        "# MCP conformance",
        "",
        f"Written by `make mcp-conformance`: npm `@modelcontextprotocol/conformance` {versions[0]} over HTTP, and",
        f"`@modelcontextprotocol/inspector --cli` {versions[1]} over standard input and output, through the relay. The",
        "scenarios are those that ask for what every server has; the others want tools of their own making (an image,",
        "a progress bar, a question to the user) that a mailbox does not have. Checks inside these scenarios that want",
        "the same are named with their reason.",
        "",
        "| by | revision | what | outcome | |",
        "|---|---|---|---|---|",
        *(
            f"| {row.tool} | {row.revision} | `{row.what}` | {row.outcome} | {'pass' if row.passed else '**fail**'} |"
            for row in rows
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """`python -m tests.conformance.mcp NODE NODE_MODULES`."""
    node, modules = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()
    rows = asyncio.run(run(node, modules))
    DOCUMENT.write_text(document(rows, modules), encoding="utf-8")
    sys.stdout.write(document(rows, modules))
    sys.exit(0 if all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    main()
