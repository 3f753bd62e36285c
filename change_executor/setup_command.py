"""The command `setup`: asks for the move login, looks at what the server lets it do, and writes the configuration.

It makes no mailbox and moves nothing: EXAMINE, LIST and MYRIGHTS are all that it says.
"""

import pwd
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from change_executor.config import ExecutorSettings
from shared.command_line import MISTAKE_STATUS
from shared.dialogue import Dialogue, at_terminal, shown, toml_string, write_configuration
from shared.imap_login import ImapFailure, ImapLogin
from shared.login_questions import ask_login, login_toml
from shared.settings import ConfigurationError, settings_from

# What people call such mailboxes; the first that is there is suggested.
_INCOMING: Final = ("incoming", "support", "queue", "to do", "todo", "inbox")
_PROCESSED: Final = ("processed", "done", "handled", "archive")
_ESCALATE: Final = ("escalate", "escalated", "urgent", "for people", "to a person")

# RFC 4314 §2.1, letter by letter what each act of ours needs.
_TO_MOVE_OUT: Final = frozenset("rte")
_TO_MOVE_IN: Final = frozenset("i")
_TO_KEEP_FLAGS: Final = frozenset("sw")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the login may see and do: mailbox names, and the rights where the server has rights."""

    names: tuple[str, ...]
    can_move: bool
    rights: dict[str, frozenset[str] | None]


def setup(
    output: Annotated[str, typer.Option(help="Where to write executor.toml; - for standard output.")] = "-",
    answers: Annotated[Path | None, typer.Option(help="Answers as TOML, instead of asking.", metavar="FILE")] = None,
    secret_file: Annotated[Path | None, typer.Option(help="The file with the password of the move login.")] = None,
    secret_credential: Annotated[str | None, typer.Option(help="Or the systemd credential that holds it.")] = None,
    journal: Annotated[Path, typer.Option(help="The journal.")] = Path("/var/lib/change-executor/journal.db"),
    socket: Annotated[Path, typer.Option(help="The private socket.")] = Path("/run/mailwarrant/reader.sock"),
    reader_uid: Annotated[int | None, typer.Option(help="The uid of agent-reader.")] = None,
) -> None:
    """Ask for the mail server, the move login and the mailboxes, try them, and write the configuration."""
    try:
        dialogue = at_terminal(answers)
        login, seen = ask_login(dialogue, "move", _look, _secret(dialogue, secret_file, secret_credential))
        dialogue.say("The login works and sees:")
        for name in seen.names:
            dialogue.say(f"  {shown(name)}")
        queue = _queue(dialogue, seen)
        text = _written(login, queue, _uids(dialogue), journal, socket, reader_uid)
        # What was written is what will be read.
        settings_from(tomllib.loads(text), ExecutorSettings, "what was asked")
        write_configuration(output, text)
    except (ConfigurationError, ImapFailure) as error:
        typer.echo(f"change-executor setup: {error}", err=True)
        raise typer.Exit(MISTAKE_STATUS) from None


def _look(login: ImapLogin) -> _Seen:
    from change_executor.connections import Connections  # noqa: PLC0415 - heavy
    from change_executor.looking import Looker  # noqa: PLC0415 - heavy

    with Looker(Connections()).session(login) as session:
        names = tuple(sorted(name for name, uses in session.special_uses().items() if "\\noselect" not in uses))
        return _Seen(names, session.has_capability("MOVE"), {name: session.rights(name) for name in names})


def _secret(dialogue: Dialogue, file: Path | None, credential: str | None) -> dict[str, Any]:
    if credential is not None:
        return {"secret_credential": credential}
    return {"secret_file": str(file or dialogue.text("secret_file", "The file with this login's password (mode 0400)"))}


def _queue(dialogue: Dialogue, seen: _Seen) -> dict[str, str]:
    def wrong(given: str) -> str | None:
        return None if given in seen.names else "no such mailbox: make it in your mail program, then start again"

    found = {"id": dialogue.text("queue", "A name for the queue (a-z, 0-9)", default="support")}
    found["account"] = dialogue.text("account", "The account's short name in reader.toml", default="mail")
    for role, question, usual in (
        ("incoming", "Messages are moved out of", _INCOMING),
        ("processed", "What is done goes to", _PROCESSED),
        ("escalate", "What needs a person goes to", _ESCALATE),
    ):
        found[role] = dialogue.text(role, question, default=_suggested(seen.names, usual), check=wrong)
    for line in _what_the_server_allows(seen, found):
        dialogue.say(line)
    return found


def _suggested(names: tuple[str, ...], usual: tuple[str, ...]) -> str | None:
    by_last_part = {name.replace("/", ".").rsplit(".", 1)[-1].casefold(): name for name in names}
    return next((by_last_part[each] for each in usual if each in by_last_part), None)


def _what_the_server_allows(seen: _Seen, queue: dict[str, str]) -> list[str]:
    """What moving and undoing will be like, said before anything is moved."""
    without_move = [] if seen.can_move else ["It has no MOVE (RFC 6851): docs/providers.md says what can be done."]
    incoming, targets = seen.rights[queue["incoming"]], [seen.rights[queue[role]] for role in ("processed", "escalate")]
    known = [each for each in targets if each is not None]
    if incoming is None or len(known) != len(targets):
        return [
            *without_move,
            "The server tells no rights: this login can do whatever the account can; only this program is narrow.",
        ]
    lines = without_move
    if not incoming >= _TO_MOVE_OUT or not all(each >= _TO_MOVE_IN for each in known):
        lines.append("It may not move: it needs `lrte` on incoming and `lrswi` on the destinations.")
    if not all(each >= _TO_KEEP_FLAGS for each in known):
        lines.append("Moved messages lose \\Seen, \\Flagged and keywords: give it `s` and `w` on the destinations.")
    if not incoming >= _TO_MOVE_IN or not all(each >= _TO_MOVE_OUT for each in known):
        lines.append("Undo will be refused: it needs `lrswite` on incoming and on the destinations.")
    return lines or ["It may move both ways, and flags are kept."]


def _uids(dialogue: Dialogue) -> tuple[str, str]:
    def asked(key: str, question: str) -> str:
        given = dialogue.text(key, f"{question} (names or uids, with commas)", check=_unknown_users)
        return ", ".join(str(_uid(each)) for each in given.split(","))

    agents = asked("agent_uids", "The users that agents run as")
    people = asked("reviewer_uids", "The users of the people who decide")
    if {uid.strip() for uid in agents.split(",")} & {uid.strip() for uid in people.split(",")}:
        dialogue.say("An agent that runs as the person who decides is not separated: it can decide by itself.")
    return agents, people


def _unknown_users(given: str) -> str | None:
    unknown = [each.strip() for each in given.split(",") if _uid(each) is None]
    return f"no user of this machine: {shown(', '.join(unknown))}" if unknown else None


def _uid(name_or_uid: str) -> int | None:
    given = name_or_uid.strip()
    if given.isdecimal():
        return int(given)
    try:
        return pwd.getpwnam(given).pw_uid
    except KeyError:
        return None


def _written(
    login: ImapLogin, queue: dict[str, str], uids: tuple[str, str], journal: Path, socket: Path, reader_uid: int | None
) -> str:
    lines = [
        "# Written by `change-executor setup`. deploy/examples/executor.toml shows every key with its meaning.",
        "[intake]",
        f"allow_uids = [{uids[0]}]",
        "",
        "[review]",
        f"allow_uids = [{uids[1]}]",
        "",
        "[reader]",
        f"socket = {toml_string(str(socket))}",
        *([] if reader_uid is None else [f"uid = {reader_uid}"]),
        "",
        "[journal]",
        f"url = {toml_string(f'sqlite:///{journal}')}",
        "",
        "[[credentials]]",
        login_toml(login),
        "",
        "[[queues]]",
        f"id = {toml_string(queue['id'])}",
        f"credential = {toml_string(login.id)}",
        f"account = {toml_string(queue['account'])}",
        f"incoming = {toml_string(queue['incoming'])}",
        "",
        "[queues.to.processed]",
        f"mailbox = {toml_string(queue['processed'])}",
        "",
        "[queues.to.escalate]",
        f"mailbox = {toml_string(queue['escalate'])}",
    ]
    return "\n".join(lines) + "\n"
