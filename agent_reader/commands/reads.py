"""`agent-reader reads`: who read what, for people and for programs; and whether the log is as it was written."""

import csv
import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_reader.commands.showing import in_utc, moment, opened_access, shown, tell
from agent_reader.config import DEFAULT_PATH, ReaderSettings
from shared.command_line import Config
from shared.identity import is_email_id, is_unprovable_email_id, is_unstable_email_id
from shared.settings import ConfigurationError, load_settings

if TYPE_CHECKING:
    from agent_reader.access import Line

# Lists of the page show the beginning of an id, and its item the whole.
_WHOLE_ID: Final = "Give all of it: M and 32 characters, as Email/get and the proposal on the review page have it."

reads_app = typer.Typer(help="The read log: which agent was shown what.", invoke_without_command=True)


@reads_app.callback(invoke_without_command=True)
def reads(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option(help="Only this agent; all without.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only from this time on (UTC).")] = None,
    message: Annotated[str | None, typer.Option(help="Only lines that name this message (M...).", metavar="ID")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most so many lines, the newest.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV (RFC 4180), a line for each message.")] = False,
    config: Config = DEFAULT_PATH,
) -> None:
    """Show what agents have read: time, agent, token, from where, account, method, octets, messages and their parts."""
    if context.invoked_subcommand is not None:
        return
    if as_json and as_csv:
        raise ConfigurationError("--json", "and --csv are two forms.", "Ask for one of them.")
    # Otherwise the beginning of an id, which lists show, would read as: nobody saw it.
    if message is not None and not _is_whole_id(message):
        raise ConfigurationError("--message", f"{shown(message)!r} is no whole id of a message.", _WHOLE_ID)
    with opened_access(load_settings(config, ReaderSettings)) as access:
        lines = access.lines(agent=agent, since=in_utc(since), email_id=message, limit=limit + 1)
        known = {token.agent for token in access.tokens()}
    if agent is not None and agent not in known:
        tell("--agent", f"{shown(agent)!r} never had a token here.", "`agent-reader token list` shows the agents.")
    _say_what_is_left_out(len(lines), limit)
    lines = lines[-limit:]
    if as_json:
        for line in lines:
            typer.echo(json.dumps(_json(line, message)))
    elif as_csv:
        _write_csv(lines, message)
    else:
        for line in lines:
            typer.echo(_text(line, message))


@reads_app.command("verify")
def verify(
    head: Annotated[
        str | None, typer.Option(help="A head that this command printed before: it must be in the log.")
    ] = None,
    config: Config = DEFAULT_PATH,
) -> None:
    """Walk the whole log and say whether any row was changed, removed or put in; ends with 1 if so."""
    with opened_access(load_settings(config, ReaderSettings)) as access:
        from agent_reader.access.chain import Link  # noqa: PLC0415 - heavy

        expected = None
        if head is not None:
            key, _, digest = head.partition(":")
            try:
                expected = Link(int(key), bytes.fromhex(digest))
            except ValueError:
                raise ConfigurationError("--head", "is no head.", "Give it as it was printed: ROW:DIGEST.") from None
        found = access.verify(expected)
    typer.echo(f"{found.rows} rows after row {found.anchor.key}; head {found.head.key}:{found.head.digest.hex()}")
    if found.wrong:
        typer.echo(f"NOT AS IT WAS WRITTEN: {found.wrong}")
        raise typer.Exit(1)
    typer.echo("whole")


def _say_what_is_left_out(found: int, limit: int) -> None:
    if found > limit:
        older = "There are older ones: narrow by --since or --message, or ask for more."
        tell("--limit", f"these are the newest {limit} lines.", older)
    elif not found:
        tell("reads", "nothing that was asked for is on record.", "Leave an option out to see more.")


def _is_whole_id(text: str) -> bool:
    return is_email_id(text) or is_unstable_email_id(text) or is_unprovable_email_id(text)


def _ids(line: "Line", message: str | None) -> list[str]:
    return [each for each in line.email_ids if message is None or each == message]


def _text(line: "Line", message: str | None) -> str:
    named = (
        f"{email_id}[{','.join(map(shown, line.parts[email_id]))}]" if email_id in line.parts else email_id
        for email_id in _ids(line, message)
    )
    what = f"{line.agent} {line.token_id} {shown(line.peer) or '-'} {line.account or '-'} {line.method} {line.octets}"
    return f"{moment(line.at)} {what} {' '.join(named)}".rstrip()


def _json(line: "Line", message: str | None) -> dict[str, Any]:
    return {
        "row": line.key,
        "at": line.at.isoformat(),
        "agent": line.agent,
        "token": line.token_id,
        "from": line.peer,
        "account": line.account,
        "method": line.method,
        "octets": line.octets,
        "hasBodies": line.has_bodies,
        "messages": [{"emailId": each, "parts": line.parts.get(each, [])} for each in _ids(line, message)],
    }


def _write_csv(lines: "list[Line]", message: str | None) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(("row", "at", "agent", "token", "from", "account", "method", "octets", "emailId", "parts"))
    for line in lines:
        for email_id in _ids(line, message) or [""]:
            parts = ";".join(line.parts.get(email_id, ()))
            row = (line.key, line.at.isoformat(), line.agent, line.token_id, line.peer, line.account, line.method)
            writer.writerow((*row, line.octets, email_id, parts))
