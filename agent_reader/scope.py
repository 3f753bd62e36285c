"""What a token may see of the mail: a value. The store alone makes of it what is not there."""

import hashlib
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final


class Depth(StrEnum):
    """How much of a message is seen.

    `HEADERS`: no text of a body, no preview, and no search in bodies. `TEXT`: texts too, attachments by name and size
    only. `FULL`: attachments and the whole octets too.
    """

    HEADERS = "headers"
    TEXT = "text"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Scope:
    """The limits of a token; None limits nothing. What is outside is not there, on every path alike.

    `accounts` are ids; `mailboxes` whole decoded names as the mail server lists them, exact and without what lies
    below them, the same for every account; `received_since` an aware time that stands still; `senders` addresses
    (`ann@example.org`) or domains (`example.org`, exact) in lower case, compared with the one address of From: a
    message with none or several has no sender. `sign_in_mail`: one-time codes, password resets and sign-in links are
    seen too.
    """

    accounts: tuple[str, ...] | None = None
    mailboxes: tuple[str, ...] | None = None
    received_since: datetime | None = None
    senders: tuple[str, ...] | None = None
    depth: Depth = Depth.FULL
    sign_in_mail: bool = False

    def allows_account(self, account_id: str) -> bool:
        """Whether there is such an account for this token."""
        return self.accounts is None or account_id in self.accounts

    @property
    def hides_emails(self) -> bool:
        """Whether an Email can be outside."""
        return self.narrows or not self.sign_in_mail

    @property
    def narrows(self) -> bool:
        """Whether more is outside than sign-in mail."""
        return self.mailboxes is not None or self.received_since is not None or self.senders is not None

    def fingerprint(self) -> str:
        """Return 16 hex digits that differ where what is seen may: states of one scope are none of another's."""
        return _fingerprint(self)


# Each question asks for it.
@lru_cache(maxsize=256)
def _fingerprint(scope: Scope) -> str:
    told = "\0".join(f"{each.name}={getattr(scope, each.name)!r}" for each in fields(scope))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


# What our own parts see: the executor's questions, the status, a preview of what a narrower scope hides.
WHOLE: Final = Scope(sign_in_mail=True)

# What a token gets that nothing else was asked for.
ORDINARY: Final = Scope()
