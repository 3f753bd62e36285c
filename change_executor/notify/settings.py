"""The section `[notify]` of `executor.toml`: when something is wrong, and whom to tell."""

from pathlib import Path
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from shared.settings import AbsolutePath, Section

_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_CredentialName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


def _web_address(url: str) -> str:
    at = urlsplit(url)
    if at.scheme != "https" and not (at.scheme == "http" and at.hostname in _LOOPBACK):
        raise ValueError("write https://...; plain http:// is for this machine only")
    if not at.hostname or at.username or at.password or at.fragment:
        raise ValueError("write https://host/path, without a user, a password or a fragment")
    return url


WebAddress = Annotated[
    str, StringConstraints(pattern=r"^https?://[!-~]+$", max_length=2000), AfterValidator(_web_address)
]


class Webhook(Section):
    """`webhook`: a POST of JSON, signed with the secret of a file or of a systemd credential."""

    url: WebAddress
    secret_file: AbsolutePath | None = None
    secret_credential: _CredentialName | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.secret_file is None) == (self.secret_credential is None):
            raise ValueError("give one of `secret_file` and `secret_credential`")
        return self


class Ntfy(Section):
    """`ntfy`: a POST of plain text to a topic's address, with an access token where the server asks for one."""

    url: WebAddress
    token_file: AbsolutePath | None = None
    token_credential: _CredentialName | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.token_file is not None and self.token_credential is not None:
            raise ValueError("give one of `token_file` and `token_credential`")
        return self


def _whole_path(command: tuple[str, ...]) -> tuple[str, ...]:
    if not Path(command[0]).is_absolute():
        raise ValueError("write the program's whole path, from /; no shell looks for it")
    return command


Command = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]+$")], ...],
    Field(min_length=1, max_length=50),
    AfterValidator(_whole_path),
]


class Notify(Section):
    """`[notify]`: from when on something is an alarm, and who is told of alarms and of what waits for a person.

    Without `webhook`, `ntfy` and `command` alarms are in the log and on the page. One message comes at once; what
    follows comes together, at most once in `digest_minutes`. `tell` says what of mail may leave the machine.
    """

    # A move takes seconds; an approval that has waited for ten minutes reads as success and is none.
    approved_minutes: Annotated[int, Field(ge=1, le=10_080)] = 10
    # Somebody looks each day, or nobody does.
    pending_hours: Annotated[int, Field(ge=1, le=2_160)] = 24
    # More than one person decides in a day.
    pending_count: Annotated[int, Field(ge=1, le=100_000)] = 50
    digest_minutes: Annotated[int, Field(ge=1, le=1_440)] = 60
    tell: Literal["counts", "subjects"] = "counts"
    webhook: Webhook | None = None
    ntfy: Ntfy | None = None
    command: Command | None = None
