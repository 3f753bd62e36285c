"""The gate's settings: `/etc/mailwarrant/gate.toml`."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator

from shared.imap_login import ImapLogin
from shared.settings import AbsolutePath, ConfigurationError, Section, read_secret

DEFAULT_PATH: Final = Path("/etc/mailwarrant/gate.toml")

# Whoever may connect may guess; 32 characters at random are never guessed.
LEAST_LOCAL_SECRET: Final = 32


class Listener(Section):
    """Where the reader connects: this machine only, since what passes here is not encrypted."""

    listen: Annotated[str, StringConstraints(pattern=r"^(127\.0\.0\.1|\[::1\]):[0-9]{1,5}$")] = "127.0.0.1:8623"
    # Whose processes may connect; where none is named, those of the user `agent-reader`. Root's and the gate's own may.
    allow_uids: frozenset[Annotated[int, Field(ge=0)]] = frozenset()
    # The reader has one connection for each account, those that listen, and those of downloads.
    max_connections: Annotated[int, Field(ge=1, le=500)] = 64

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to listen at."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


class GatedAccount(ImapLogin):
    """One mail login, and the secret by which the reader asks for it: with `id` as the user name."""

    local_secret_file: AbsolutePath | None = None
    local_secret_credential: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,100}$")] | None = None

    @model_validator(mode="after")
    def _one_local_secret(self) -> Self:
        if (self.local_secret_file is None) == (self.local_secret_credential is None):
            raise ValueError("give one of `local_secret_file` and `local_secret_credential`")
        return self

    def local_secret(self) -> SecretStr:
        """Read the reader's secret. Raises `ConfigurationError`, also for one that could be guessed."""
        where = f"the local secret of `{self.id}`"
        secret = read_secret(self.local_secret_file, None, where, credential=self.local_secret_credential)
        if len(secret.get_secret_value()) < LEAST_LOCAL_SECRET:
            raise ConfigurationError(
                where,
                f"has fewer than {LEAST_LOCAL_SECRET} characters.",
                "Make one at random: openssl rand -hex 32",
            )
        return secret


class GateSettings(Section):
    """All of gate.toml."""

    gate: Listener = Listener()
    accounts: Annotated[tuple[GatedAccount, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        twice = [each for each, times in Counter(account.id for account in self.accounts).items() if times > 1]
        if twice:
            raise ValueError(f"two accounts have the id `{twice[0]}`")
        return self
