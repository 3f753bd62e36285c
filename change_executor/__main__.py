"""The command line: what the operator does on the machine. Heavy imports wait until their command runs."""

import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from change_executor.setup_command import setup
from shared.oauth_command import oauth_app
from shared.tokens import DEFAULT_LIFETIME_DAYS

if TYPE_CHECKING:
    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal

# The operator's mistake (a key, a name, a state of things), as against a failure of the machine.
_MISTAKE: Final = 2

_OPERATOR: Final = "operator"

app = typer.Typer(
    name="change-executor",
    help="Moves what a person signed, and nothing else.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
token = typer.Typer(help="The tokens that let agents propose.", no_args_is_help=True)
user = typer.Typer(help="The people who may decide.", no_args_is_help=True)
audit = typer.Typer(help="The journal, looked at.", no_args_is_help=True)
app.add_typer(token, name="token")
app.add_typer(user, name="user")
app.add_typer(audit, name="audit")

Config = Annotated[Path, typer.Option("--config", help="The configuration file.")]
DEFAULT_CONFIG: Final = Path("/etc/mailwarrant/executor.toml")
app.add_typer(oauth_app(lambda path: _settings(path).credentials, DEFAULT_CONFIG), name="oauth")
app.command()(setup)


@app.command()
def serve(config: Config = DEFAULT_CONFIG) -> None:
    """Take proposals, show them to people, and move what they approved; ends at SIGTERM."""
    with _mistakes_named():
        settings = _settings(config)
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

        if settings.queue(queue) is None:
            raise proposer_tokens.TokenRefused(
                "unknown_queue",
                f"There is no queue {queue!r} in {config}.",
                f"It has: {', '.join(known.id for known in settings.queues)}.",
            )
        made = proposer_tokens.create_token(
            journal, agent=agent, queue=queue, days=days, random_octets=secrets.token_bytes
        )
        _tell(f"Token {made.id} lets {agent} propose to {queue} for {days} days. It is not shown again:")
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
def revoke_token(token_id: str, config: Config = DEFAULT_CONFIG) -> None:
    """Revoke a token at once; proposals that it made stay for a person to decide."""
    with _journal(config) as (journal, _):
        from change_executor.intake import proposer_tokens  # noqa: PLC0415 - the journal is heavy

        row = proposer_tokens.revoke_token(journal, token_id)
        print(f"Token {row.id} of {row.agent} opens nothing any more.")


@user.command("add")
def add_user(name: str, config: Config = DEFAULT_CONFIG) -> None:
    """Let a person decide; they come in by a link."""
    with _journal(config, may_create=True) as (journal, _):
        from change_executor.review.people import add_person  # noqa: PLC0415 - the journal is heavy

        add_person(journal, name)
        print(f"{name} may decide. Let them in by: {sys.argv[0]} user link {name} --config {config}")


@user.command("link")
def link_user(name: str, config: Config = DEFAULT_CONFIG) -> None:
    """Print a link that lets a person in once, within ten minutes."""
    with _journal(config) as (journal, settings):
        from change_executor.review.people import LINK_MINUTES, new_link  # noqa: PLC0415 - the journal is heavy

        secret = new_link(journal, name, secrets.token_bytes)
        _tell(f"For {name}, once, within {LINK_MINUTES} minutes:")
        print(f"{settings.review.url}/link#{secret}")


@app.command()
def stop(config: Config = DEFAULT_CONFIG) -> None:
    """Press the stop button: no proposal is taken and nothing moves until `resume`."""
    with _journal(config) as (journal, settings):
        from change_executor.switch import press_stop  # noqa: PLC0415 - the journal is heavy

        print("Stopped." if press_stop(journal, _OPERATOR) else "It was stopped already.")
        _tell(f"In the journal {settings.journal.url}")


@app.command()
def resume(config: Config = DEFAULT_CONFIG) -> None:
    """Release the stop button."""
    with _journal(config) as (journal, _):
        from change_executor.switch import release_stop  # noqa: PLC0415 - the journal is heavy

        print("Released." if release_stop(journal, _OPERATOR) else "It was not stopped.")


@audit.command("verify")
def verify_audit(config: Config = DEFAULT_CONFIG) -> None:
    """Verify the whole journal; exit status 1 where something is wrong."""
    with _journal(config) as (journal, _):
        from change_executor.audit import verify  # noqa: PLC0415 - the journal is heavy

        with journal.reading() as connection:
            found = verify(connection)
        for finding in found.findings:
            print(f"{finding.fault.value}: {finding.subject}: {finding.detail}")
        print(f"{found.events} events, head {found.head}")
        if found.findings:
            raise typer.Exit(1)


@contextmanager
def _journal(config: Path, *, may_create: bool = False) -> "Iterator[tuple[Journal, ExecutorSettings]]":
    with _mistakes_named():
        from change_executor.journal.open import journal_path, open_journal  # noqa: PLC0415 - the database is heavy

        settings = _settings(config)
        is_new = not journal_path(settings.journal.url).exists()
        journal = open_journal(settings.journal.url, _utc_now, may_create=may_create)
        if is_new:
            _tell(f"Made a new journal: {settings.journal.url}")
        try:
            yield journal, settings
        finally:
            journal.close()


@contextmanager
def _mistakes_named() -> Iterator[None]:
    from change_executor.errors import JournalUnavailable  # noqa: PLC0415 - with the command
    from change_executor.intake.proposer_tokens import TokenRefused  # noqa: PLC0415 - with the command
    from change_executor.review.people import PersonRefused  # noqa: PLC0415 - with the command
    from shared.settings import ConfigurationError  # noqa: PLC0415 - with the command

    try:
        yield
    except (ConfigurationError, TokenRefused, PersonRefused) as error:
        _tell(str(error))
        raise typer.Exit(_MISTAKE) from None
    except JournalUnavailable as error:
        _tell(f"The journal cannot be used: {error}. Nothing was done.")
        raise typer.Exit(1) from None


def _settings(config: Path) -> "ExecutorSettings":
    from change_executor.config import ExecutorSettings  # noqa: PLC0415 - with the command
    from shared.settings import load_settings  # noqa: PLC0415 - with the command

    return load_settings(config, ExecutorSettings)


def _tell(words: str) -> None:
    print(words, file=sys.stderr)


def _utc_now() -> datetime:
    return datetime.now(UTC)


main: Final[Callable[[], None]] = app

if __name__ == "__main__":
    main()
