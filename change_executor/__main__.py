"""The command line: what the operator does on the machine. Heavy imports wait until their command runs."""

import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from change_executor.audit_commands import audit
from change_executor.backup_commands import backup, restore
from change_executor.command_line import DEFAULT_CONFIG, mistakes_named, say, settings_of
from change_executor.doctor.command import doctor
from change_executor.downgrade_command import downgrade
from change_executor.setup_command import setup
from shared.command_line import MISTAKE_STATUS, Config
from shared.oauth_command import oauth_app
from shared.time_and_chance import utc_now
from shared.tokens import DEFAULT_LIFETIME_DAYS, id_of_token

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal
    from change_executor.review.people import Role

_OPERATOR: Final = "operator"

_MOMENTS: Final = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"]

app = typer.Typer(
    name="change-executor",
    help="Moves what a person signed, and nothing else.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
token = typer.Typer(help="The tokens that let agents propose.", no_args_is_help=True)
user = typer.Typer(help="The people who may decide.", no_args_is_help=True)
agent = typer.Typer(help="The agents that propose.", no_args_is_help=True)
app.add_typer(token, name="token")
app.add_typer(agent, name="agent")
app.add_typer(user, name="user")
app.add_typer(audit, name="audit")

app.add_typer(oauth_app(lambda path: settings_of(path).credentials, DEFAULT_CONFIG), name="oauth")
app.command()(backup)
app.command()(restore)
app.command()(downgrade)
app.command()(doctor)
app.command()(setup)


@app.command()
def serve(config: Config = DEFAULT_CONFIG) -> None:
    """Take proposals, show them to people, and move what they approved; ends at SIGTERM."""
    with mistakes_named():
        settings = settings_of(config)
        from change_executor.app import serve as run  # noqa: PLC0415 - the server is heavy

        run(settings)


@token.command("create")
def create_token(
    agent: Annotated[str, typer.Option(help="The agent's name, the same as for the reader.")],
    queue: Annotated[str, typer.Option(help="The one queue that the token opens.")],
    days: Annotated[int, typer.Option(help="It ends by itself after so many days.")] = DEFAULT_LIFETIME_DAYS,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Make a token and print it; it is shown this once."""
    with _journal(config, may_create=True) as (journal, settings):
        from change_executor.intake import proposer_tokens  # noqa: PLC0415 - the journal is heavy

        asked = settings.queue(queue)
        if asked is None:
            raise proposer_tokens.TokenRefused(
                "unknown_queue",
                f"There is no queue {queue!r} in {config}.",
                f"It has: {', '.join(known.id for known in settings.queues)}.",
            )
        made = proposer_tokens.create_token(
            journal, agent=agent, queue=queue, days=days, random_octets=secrets.token_bytes
        )
        if not asked.takes_from(agent):
            say(f"{agent} is not in `agents` of queue {queue} in {config}: until it is, this token opens nothing.")
        say(f"Token {made.id} lets {agent} propose to {queue} for {days} days. It is not shown again:")
        print(made.text)


@token.command("list")
def list_tokens(config: Config = DEFAULT_CONFIG) -> None:
    """Print every token without its secret."""
    with _journal(config) as (journal, _):
        from change_executor.intake.proposer_tokens import list_tokens as rows  # noqa: PLC0415 - the journal is heavy

        for row in rows(journal):
            state = "expired" if row.expires_at <= journal.now() else "good"
            if row.revoked_at is not None:
                state = f"revoked {row.revoked_at:%Y-%m-%d}"
            print(f"{row.id}  {row.agent:<20} {row.queue:<20} until {row.expires_at:%Y-%m-%d}  {state}")


@token.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `token list` shows, or the token.")],
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Revoke a token at once; proposals that it made stay for a person to decide."""
    with _journal(config) as (journal, _):
        from change_executor.intake import proposer_tokens  # noqa: PLC0415 - the journal is heavy

        row = proposer_tokens.revoke_token(journal, id_of_token(token_id))
        print(f"Token {row.id} of {row.agent} opens nothing any more.")


@agent.command("revoke")
def revoke_agent(name: str, config: Config = DEFAULT_CONFIG) -> None:
    """Revoke an agent: all its tokens at once, and its proposals that nobody has moved yet."""
    with _journal(config) as (journal, _):
        from change_executor.agents import revoke_agent as revoke  # noqa: PLC0415 - the journal is heavy

        done = revoke(journal, name, _OPERATOR)
        _say_where_unknown(journal, name)
        print(f"{name} may propose nothing any more: {len(done.tokens)} tokens, {len(done.proposals)} proposals ended.")
        for proposal_id in done.in_flight:
            print(f"{proposal_id} is in flight: it is concluded first. See: change-executor audit show {proposal_id}")


@app.command()
def undo(
    proposals: Annotated[list[str] | None, typer.Argument(help="Proposals whose moves are taken back.")] = None,
    agent: Annotated[str | None, typer.Option(help="Everything that this agent proposed and that was moved.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(help="With --agent: only what was moved since then (UTC).", formats=_MOMENTS),
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Move messages back to where they came from, if they still lie where they were put."""
    if bool(proposals) == (agent is not None) or (agent is None) != (since is None):
        say("Name proposals, or an agent and a moment: --agent NAME --since 2026-11-29T08:00:00")
        raise typer.Exit(MISTAKE_STATUS)
    with _journal(config) as (journal, settings):
        from change_executor.undoing import undo_proposals, undo_since  # noqa: PLC0415 - the journal is heavy

        if agent is not None and since is not None:
            _say_where_unknown(journal, agent)
            done = undo_since(journal, settings, agent, since.replace(tzinfo=UTC), _OPERATOR)
        else:
            done = undo_proposals(journal, settings, proposals or [], _OPERATOR)
        for proposal_id in done.undoing:
            print(f"{proposal_id}: it is to be moved back. See: change-executor audit show {proposal_id}")
        for proposal_id, refusal in done.refused:
            print(f"{proposal_id}: not moved back: {refusal.value}")
        print(f"{len(done.undoing)} asked for, {len(done.refused)} refused.")
        if done.refused:
            raise typer.Exit(1)


@user.command("add")
def add_user(
    name: str,
    role: Annotated[
        str | None,
        typer.Option(help="reviewer, or administrator: may also let people and agents in; the first person is one."),
    ] = None,
    config: Config = DEFAULT_CONFIG,
) -> None:
    """Let a person decide; they come in by a link."""
    with _journal(config, may_create=True) as (journal, _):
        from change_executor.review.people import add_person  # noqa: PLC0415 - the journal is heavy

        person = add_person(journal, name, None if role is None else _role(role))
        print(
            f"{name} may decide, as {person.role.value}. "
            f"Let them in by: {sys.argv[0]} user link {name} --config {config}"
        )


@user.command("list")
def list_users(config: Config = DEFAULT_CONFIG) -> None:
    """Print everybody who may decide, with their roles and what lets them in."""
    with _journal(config) as (journal, _):
        from change_executor.review.people import list_people  # noqa: PLC0415 - the journal is heavy

        with journal.reading() as connection:
            people = list_people(connection)
        for person in people:
            ways = [way for way, has in (("password", person.has_password), ("passkey", person.has_passkey)) if has]
            print(f"{person.name:<20} {person.role.value:<14} {', '.join(ways) or 'no way in yet'}")


@user.command("role")
def give_role(name: str, role: str, config: Config = DEFAULT_CONFIG) -> None:
    """Make a person a reviewer or an administrator."""
    with _journal(config) as (journal, _):
        from change_executor.review.people import change_role  # noqa: PLC0415 - the journal is heavy

        with journal.writing() as writing:
            change_role(writing, name, _role(role), _OPERATOR)
        print(f"{name} is {role} now.")


@user.command("remove")
def remove_user(name: str, config: Config = DEFAULT_CONFIG) -> None:
    """Let a person decide no more, at once; what they decided stays on record."""
    with _journal(config) as (journal, _):
        from change_executor.review.people import remove_person  # noqa: PLC0415 - the journal is heavy

        with journal.writing() as writing:
            remove_person(writing, name, _OPERATOR)
        print(f"{name} decides no more.")


@user.command("link")
def link_user(name: str, config: Config = DEFAULT_CONFIG) -> None:
    """Print a link that lets a person in once, within ten minutes."""
    with _journal(config) as (journal, settings):
        from change_executor.review.links import LINK_MINUTES, new_link  # noqa: PLC0415 - the journal is heavy

        secret = new_link(journal, name, secrets.token_bytes)
        say(f"For {name}, once, within {LINK_MINUTES} minutes:")
        print(f"{settings.review.url}/link#{secret}")


@app.command()
def stop(config: Config = DEFAULT_CONFIG) -> None:
    """Press the stop button: no proposal is taken and nothing moves until `resume`."""
    with _journal(config) as (journal, settings):
        from change_executor.switch import in_flight, press_stop  # noqa: PLC0415 - the journal is heavy

        print("Stopped." if press_stop(journal, _OPERATOR) else "It was stopped already.")
        with journal.reading() as connection:
            found = in_flight(connection)
        for proposal_id in found.in_flight:
            print(f"{proposal_id} is in flight: its command may have left, and it is concluded by looking.")
        print(f"{len(found.in_flight)} in flight, {len(found.held)} held.")
        say(f"In the journal {settings.journal.url}")


@app.command()
def resume(config: Config = DEFAULT_CONFIG) -> None:
    """Release the stop button; what waited goes on at once."""
    with _journal(config) as (journal, settings):
        from change_executor.switch import release_stop, stop_file_present  # noqa: PLC0415 - the journal is heavy

        if stop_file_present(settings.stop_file):
            say(f"The stop file {settings.stop_file} is still there. Remove it first, then resume.")
            raise typer.Exit(MISTAKE_STATUS)
        print("Released." if release_stop(journal, _OPERATOR) else "It was not stopped.")


def _say_where_unknown(journal: "Journal", agent: str) -> None:
    # A name that was mistyped would read as: nothing was left to do.
    from change_executor.intake.proposer_tokens import list_tokens  # noqa: PLC0415 - the journal is heavy

    known = sorted({row.agent for row in list_tokens(journal)})
    if agent not in known:
        say(f"No token was ever made here for an agent {agent!r}. It has: {', '.join(known) or 'none'}.")


def _role(text: str) -> "Role":
    from change_executor.review.people import PersonRefused, Role  # noqa: PLC0415 - with the command

    try:
        return Role(text)
    except ValueError:
        raise PersonRefused("unknown_role", f"There is no role {text!r}.", f"Use one of: {', '.join(Role)}.") from None


@contextmanager
def _journal(config: Path, *, may_create: bool = False) -> "Iterator[tuple[Journal, ExecutorSettings]]":
    with mistakes_named():
        from change_executor.journal.file import journal_path  # noqa: PLC0415 - the database is heavy
        from change_executor.journal.open import open_journal  # noqa: PLC0415 - the database is heavy

        settings = settings_of(config)
        is_new = not journal_path(settings.journal.url).exists()
        journal = open_journal(settings.journal.url, utc_now, may_create=may_create)
        if is_new:
            say(f"Made a new journal: {settings.journal.url}")
        committed: list[bool] = []
        journal.listen(lambda: committed.append(True))
        try:
            yield journal, settings
        finally:
            journal.close()
            if committed:
                from change_executor.watch import poke  # noqa: PLC0415 - only what wrote wakes the daemon

                poke(journal_path(settings.journal.url))


main: Final[Callable[[], None]] = app

if __name__ == "__main__":
    main()
