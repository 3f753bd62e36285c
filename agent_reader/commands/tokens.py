"""`agent-reader token ...`: made, shown, tried out, taken back."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from agent_reader.commands.asked_scope import asked_budget, asked_lifetime, asked_note, asked_scope
from agent_reader.commands.showing import moment, opened_access, shown, tell
from agent_reader.config import DEFAULT_PATH, ReaderSettings
from agent_reader.scope import Depth, Scope
from shared.command_line import Config
from shared.settings import ConfigurationError, load_settings
from shared.time_and_chance import utc_now
from shared.tokens import DEFAULT_LIFETIME_DAYS, id_of_token

if TYPE_CHECKING:
    from agent_reader.access import KnownToken

_IDS: Final = "`agent-reader token list` shows the ids."

token_app = typer.Typer(help="Reader tokens: what an agent shows to read.", no_args_is_help=True)


@token_app.command("create")
def token_create(  # noqa: PLR0913, PLR0917 - one for each option
    agent: Annotated[str, typer.Option(help="The agent's name: a-z, 0-9 and -.")],
    account: Annotated[list[str] | None, typer.Option(help="Only this account; more than once for more.")] = None,
    mailbox: Annotated[
        list[str] | None, typer.Option(help="Only this mailbox, by its whole name; more than once for more.")
    ] = None,
    since: Annotated[datetime | None, typer.Option(help="Only what was received since this time (UTC).")] = None,
    sender: Annotated[
        list[str] | None, typer.Option(help="Only from this address or domain; more than once for more.")
    ] = None,
    depth: Annotated[Depth, typer.Option(help="How much of each message is seen.")] = Depth.FULL,
    allow_sign_in_mail: Annotated[
        bool, typer.Option("--allow-sign-in-mail", help="One-time codes, password resets and sign-in links too.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(help="Most octets of answers an hour, like 5M.", metavar="OCTETS")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help=f"30d, or a date (UTC); {DEFAULT_LIFETIME_DAYS}d if left out.", metavar="DAYS|DATE"),
    ] = None,
    days: Annotated[int | None, typer.Option(help="The same in days.", hidden=True)] = None,
    note: Annotated[str, typer.Option(help="For people: what it is for.")] = "",
    preview: Annotated[bool, typer.Option("--preview", help="Show what it would see, and make none.")] = False,
    config: Config = DEFAULT_PATH,
) -> None:
    """Make a token for an agent and print it, once."""
    settings = load_settings(config, ReaderSettings)
    scope = asked_scope(
        [each.id for each in settings.accounts],
        accounts=account or (),
        mailboxes=mailbox or (),
        since=since,
        senders=sender or (),
        depth=depth,
        sign_in_mail=allow_sign_in_mail,
    )
    lifetime = asked_lifetime(expires, utc_now()) if days is None else timedelta(days=days)
    octets, words = asked_budget(budget), asked_note(note)
    if preview:
        _print_preview(settings, scope)
        return
    _say_what_is_not_there(settings, scope)
    with opened_access(settings, may_create=True) as access:
        typer.echo(access.create_token(agent, lifetime, scope=scope, budget=octets, note=words).text)


@token_app.command("list")
def token_list(config: Config = DEFAULT_PATH) -> None:
    """Show every token's id, agent, dates, scope and last use; never the token."""
    with opened_access(load_settings(config, ReaderSettings)) as access:
        for token in access.tokens():
            for line in _lines(token):
                typer.echo(line)


@token_app.command("preview")
def token_preview(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `token list` shows, or the token.")],
    config: Config = DEFAULT_PATH,
) -> None:
    """Show what a token sees: counts by mailbox, and the newest subjects."""
    settings = load_settings(config, ReaderSettings)
    named = id_of_token(token_id)
    with opened_access(settings) as access:
        found = next((token for token in access.tokens() if token.id == named), None)
    if found is None:
        raise ConfigurationError("token preview", f"there is no token `{shown(named)}`.", _IDS)
    if found.revoked_at is not None or found.expires_at <= utc_now():
        tell("token preview", f"it opens nothing any more: {_state(found)}.", "This is what its scope would show now.")
    _print_preview(settings, found.scope)


@token_app.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `token list` shows, or the token.")],
    config: Config = DEFAULT_PATH,
) -> None:
    """Make a token open nothing from now on; what it holds open ends within a second."""
    named = id_of_token(token_id)
    with opened_access(load_settings(config, ReaderSettings)) as access:
        if not access.revoke(named):
            raise ConfigurationError("token revoke", f"there is no token `{shown(named)}` that opens.", _IDS)
        typer.echo(f"revoked {named}")


def _lines(token: "KnownToken") -> list[str]:
    from agent_reader.access.scope_text import described  # noqa: PLC0415 - heavy

    used = "never used" if token.used_at is None else f"last used {moment(token.used_at)}"
    if token.used_from:
        used += f" from {shown(token.used_from)}"
    budget = "" if token.budget is None else f"; {token.budget} octets an hour"
    lines = [
        f"{token.id} {token.agent} created {moment(token.created_at)} {_state(token)} {used}",
        f"  sees {_clean(described(token.scope))}{budget}",
    ]
    return [*lines, f"  {shown(token.note)}"] if token.note else lines


def _state(token: "KnownToken") -> str:
    if token.revoked_at is not None:
        return f"revoked {moment(token.revoked_at)}"
    return f"{'until' if token.expires_at > utc_now() else 'expired'} {moment(token.expires_at)}"


def _say_what_is_not_there(settings: ReaderSettings, scope: Scope) -> None:
    if scope.mailboxes is None:
        return
    from agent_reader.commands.preview import unknown_mailboxes  # noqa: PLC0415 - heavy

    for name in unknown_mailboxes(settings, scope):
        later = (
            "The token sees one of that name should it come. Otherwise revoke it, and mind capitals: --preview shows."
        )
        tell("--mailbox", f"there is no mailbox {shown(name)!r} now.", later)


def _clean(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _print_preview(settings: ReaderSettings, scope: Scope) -> None:
    from agent_reader.commands.preview import preview  # noqa: PLC0415 - heavy
    from agent_reader.listening import check_owner  # noqa: PLC0415 - heavy

    check_owner(settings.store.folder)
    for line in preview(settings, scope):
        typer.echo(line)
