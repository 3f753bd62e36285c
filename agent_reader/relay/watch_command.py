"""`agent-reader watch --run COMMAND...`: wakes a program when mail arrives; as the agent's own user."""

import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from agent_reader.relay.endpoint import Endpoint, Refused, Unreachable
from agent_reader.relay.event_stream import EventStream
from agent_reader.relay.jmap_client import JmapClient, accounts
from agent_reader.relay.options import READER_URL, ReaderUrl, reader_at
from agent_reader.relay.watch import Pace, Watch, WatchEnded
from agent_reader.relay.watch_filter import WatchFilter
from agent_reader.relay.watch_run import Batch, Ended, environment, run
from agent_reader.relay.watch_state import StateFile, WatchState
from shared.command_line import run_program
from shared.settings import ConfigurationError
from shared.time_and_chance import utc_now

_FAILED: Final = 1

STATE_FILE: Final = Path("~/.local/state/mailwarrant/watch.json")

app = typer.Typer(add_completion=False)


# What the command takes, in the order of its help.
_TokenFile = Annotated[
    Path | None,
    typer.Option(envvar="MAILWARRANT_TOKEN_FILE", help="The file with the agent's reader token (mwr_...)."),
]
_Command = Annotated[
    list[str] | None, typer.Argument(metavar="COMMAND...", help="After --run: the program and its arguments.")
]
_Runs = Annotated[bool, typer.Option("--run", help="What follows is the command. The last option.")]
_From = Annotated[list[str] | None, typer.Option("--from", help="From this address; may be repeated.")]
_FromDomain = Annotated[
    list[str] | None, typer.Option("--from-domain", help="From this domain, exact: none below it; repeatable.")
]
_To = Annotated[list[str] | None, typer.Option("--to", help="To or Cc this address; may be repeated.")]
_SubjectContains = Annotated[str, typer.Option(help="The subject contains this, letter case aside.")]
_HasAttachment = Annotated[
    bool | None, typer.Option("--has-attachment/--no-attachment", help="With or without attachments.")
]
_Queue = Annotated[
    str | None, typer.Option(help="In the mailbox that the queue's mail comes into: its id, role or whole name.")
]
_AdmitAutomatic = Annotated[bool, typer.Option("--admit-automatic", help="Also mail that programs sent (RFC 3834).")]
_Interval = Annotated[float, typer.Option(min=0, help="Seconds: at most one batch within them.")]
_Retry = Annotated[float, typer.Option(min=0.01, help="Seconds after a failure; doubled each time.")]
_TimeLimit = Annotated[float, typer.Option(min=0.1, help="Seconds that the command may take.")]
_PassVariable = Annotated[
    list[str] | None, typer.Option(help="A variable of the environment that the command needs; repeatable.")
]
_Account = Annotated[str | None, typer.Option(help="Which account, where the token opens several.")]
_StateFile = Annotated[Path, typer.Option(help="Where the watch keeps its place.")]
_Once = Annotated[bool, typer.Option("--once", help="Look once, give one batch, and end.")]
_Status = Annotated[bool, typer.Option("--status", help="Tell how the watch stands, and end.")]


class _Stopped(BaseException):
    """A signal asked the watch to end."""


@app.command(context_settings={"allow_interspersed_args": False})
def watch(  # noqa: PLR0913, PLR0917 - the options of a command
    token_file: _TokenFile = None,
    reader_url: ReaderUrl = READER_URL,
    command: _Command = None,
    runs: _Runs = False,
    sender: _From = None,
    domain: _FromDomain = None,
    to: _To = None,
    subject_contains: _SubjectContains = "",
    has_attachment: _HasAttachment = None,
    queue: _Queue = None,
    admit_automatic: _AdmitAutomatic = False,
    interval: _Interval = 60.0,
    retry: _Retry = 30.0,
    time_limit: _TimeLimit = 900.0,
    pass_variable: _PassVariable = None,
    account: _Account = None,
    state_file: _StateFile = STATE_FILE,
    once: _Once = False,
    status: _Status = False,
) -> None:
    """Run COMMAND when mail arrives, with the new messages, framed for a model, on its standard input."""
    file = StateFile(state_file.expanduser())
    if status:
        _tell(file.read())
        return
    if token_file is None:
        raise ConfigurationError("--token-file", "is missing.", "Name the file with the agent's reader token.")
    if not command or not runs:
        raise ConfigurationError("--run", "names no command.", "Put it last: agent-reader watch ... --run PROGRAM ARG")
    conditions = WatchFilter(
        senders=_lowered(sender),
        domains=_lowered(domain),
        recipients=_lowered(to),
        subject_contains=subject_contains,
        has_attachment=has_attachment,
        admits_automatic=admit_automatic,
    )
    pace = Pace(timedelta(seconds=interval), timedelta(seconds=retry))
    give = partial(_give, command, environment(os.environ, pass_variable or ()), time_limit)
    with file.sole_use():
        _watch(_Wish(account, queue, conditions, pace, give, once=once), reader_at(reader_url, token_file), file)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is asked of the watch; `conditions` without the mailbox of `queue`, whose id the reader knows."""

    account: str | None
    queue: str | None
    conditions: WatchFilter
    pace: Pace
    give: Callable[[Batch], Ended]
    once: bool


def _watch(wish: _Wish, reader: Endpoint, file: StateFile) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        client = JmapClient(reader, _account(reader, wish.account))
        mailbox_id = None if wish.queue is None else client.mailbox_id(wish.queue)
        wanted = replace(wish.conditions, mailbox_id=mailbox_id)
        watching = Watch(client, file, wanted, wish.pace, utc_now, secrets.token_bytes, wish.give, _say)
        if wish.once:
            raise typer.Exit(0 if watching.once() else _FAILED)
        watching.follow(EventStream(reader))
    except (WatchEnded, Refused, Unreachable) as error:
        _say(f"ended: {error.why if isinstance(error, Unreachable) else error} Nothing is lost: start it again.")
        raise typer.Exit(_FAILED) from None
    except _Stopped:
        return


def _stop(_number: int, _frame: object) -> None:
    # Once is enough: what is ended then is not to be interrupted.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise _Stopped


def _give(command: list[str], variables: dict[str, str], seconds: float, batch: Batch) -> Ended:
    return run(command, batch.text, variables, seconds)


def _account(reader: Endpoint, named: str | None) -> str:
    found = accounts(reader)
    if named is None and len(found) == 1:
        return found[0]
    if named not in found or named is None:
        raise ConfigurationError("--account", "names no account of this token.", f"Use one of {', '.join(found)}.")
    return named


def _tell(state: WatchState | None) -> None:
    if state is None:
        typer.echo("No watch has looked yet with this file.")
        return
    typer.echo(f"account {state.account}, since {state.started_at:%Y-%m-%d %H:%M} UTC")
    typer.echo(f"waiting: {len(state.waiting)} messages" + _until(state.not_before))
    if state.last_run is not None:
        run_ = state.last_run
        typer.echo(f"last run: {run_.at:%Y-%m-%d %H:%M:%S} UTC, {run_.messages} messages, {run_.code}")
    if state.failures:
        typer.echo(f"failures in a row: {state.failures}")
    if state.unreachable is not None:
        typer.echo(f"the reader cannot be asked: {state.unreachable}")


def _until(moment: datetime | None) -> str:
    return "" if moment is None else f", not given before {moment:%Y-%m-%d %H:%M:%S} UTC"


def _lowered(values: list[str] | None) -> frozenset[str]:
    return frozenset(each.strip().lower() for each in values or ())


def _say(text: str) -> None:
    typer.echo(f"agent-reader watch: {text}", err=True)


if __name__ == "__main__":
    run_program(app, "agent-reader watch")
