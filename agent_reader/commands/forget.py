"""`agent-reader forget`: an account's index is removed for good; the mail server keeps the mail."""

from typing import Annotated

import typer

from agent_reader.config import DEFAULT_PATH, ReaderSettings
from shared.command_line import Config
from shared.settings import ConfigurationError, load_settings


def forget(
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's id, in the configuration or not.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    config: Config = DEFAULT_PATH,
) -> None:
    """Remove an account's index for good: texts, headers, ids and states. Refused while the reader runs."""
    from agent_reader.listening import check_owner, sole_use_of  # noqa: PLC0415 - heavy
    from agent_reader.store.forgetting import accounts_with_files, forget_files  # noqa: PLC0415 - heavy
    from agent_reader.sync.proven import FILE_NAME, ProvenLogins  # noqa: PLC0415 - heavy

    settings = load_settings(config, ReaderSettings)
    folder = settings.store.folder
    check_owner(folder)
    known = accounts_with_files(folder) if folder.exists() else []
    if account not in known:
        raise ConfigurationError(
            "forget",
            f"there is no index of an account `{account[:64]}` in {folder}.",
            f"There is one of {', '.join(known)}." if known else "Nothing needs to be removed.",
        )
    with sole_use_of(folder):
        if not yes:
            typer.confirm(f"Remove the index of `{account}` for good?", abort=True)
        octets = forget_files(folder, account)
        ProvenLogins(folder / FILE_NAME).forget(account)
    typer.echo(f"The index of `{account}` is gone ({octets / 1_000_000:,.1f} MB).")
    typer.echo("The read log still names the messages that agents read, by ids alone; see `agent-reader reads`.")
    if any(each.id == account for each in settings.accounts):
        typer.echo(f"The configuration still has `{account}`: the next start of the reader reads its mail again.")
