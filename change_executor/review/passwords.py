"""Passwords: argon2id, one cost for every answer, and the throttle on guesses."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

MIN_PASSWORD_CHARACTERS: Final = 12
# argon2 reads it whole; more than a long sentence is an attempt to make us work.
MAX_PASSWORD_CHARACTERS: Final = 1_000

# A check costs some 220 ms and 64 MiB: more at once would let a guesser take the machine.
CHECKS_AT_ONCE: Final = 2

# A person mistypes a few times; after that each further guess waits twice as long as the one before.
FREE_GUESSES: Final = 5
_FIRST_WAIT: Final = timedelta(seconds=2)
_LONGEST_WAIT: Final = timedelta(minutes=15)
_FORGOTTEN_AFTER: Final = timedelta(hours=1)
# Bounds the memory that guesses at many names can take; the oldest are forgotten first.
_MAX_REMEMBERED: Final = 10_000


class Passwords:
    """Hashes and checks passwords; blocking and dear, so callers run it in `CHECKS_AT_ONCE` threads at most."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = PasswordHasher() if hasher is None else hasher
        # Checked where a name is unknown or has no password, so that the answer takes as long as any other.
        self._nobodys = self._hasher.hash("nobody has this password")

    def hash(self, password: str) -> str:
        """Return the argon2id hash of a password, with its salt and parameters."""
        return self._hasher.hash(password)

    def matches(self, stored_hash: str | None, untrusted_password: str) -> bool:
        """Whether this is the password; None (nobody, or none set) costs the same and never matches."""
        try:
            self._hasher.verify(self._nobodys if stored_hash is None else stored_hash, untrusted_password)
        except (VerificationError, InvalidHashError):
            return False
        return stored_hash is not None

    def needs_rehash(self, stored_hash: str) -> bool:
        """Whether the hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(stored_hash)


def too_weak(password: str) -> str | None:
    """Return the sentence that says why a password cannot be used, or None."""
    if len(password) < MIN_PASSWORD_CHARACTERS:
        return f"A password needs at least {MIN_PASSWORD_CHARACTERS} characters; a short sentence is easy to remember."
    if len(password) > MAX_PASSWORD_CHARACTERS:
        return f"A password has at most {MAX_PASSWORD_CHARACTERS} characters."
    if len(set(password)) < 4:  # noqa: PLR2004 - "aaaaaaaaaaaa" and its kin
        return "That password repeats too few characters; a short sentence is easy to remember."
    return None


@dataclass(slots=True)
class _Guesses:
    failed: int
    last: datetime


class Throttle:
    """Slows guesses by source (a peer uid or an address) and account together.

    Never by the account alone: an agent that guesses at a person's name must not lock that person out. Kept in
    memory; used from the event loop only.
    """

    def __init__(self) -> None:
        self._guesses: OrderedDict[tuple[str, str], _Guesses] = OrderedDict()

    def wait(self, source: str, account: str, now: datetime) -> timedelta:
        """Return how long this source must wait before its next guess at this account; zero for not at all."""
        guesses = self._guesses.get((source, account))
        if guesses is None or now - guesses.last > _FORGOTTEN_AFTER or guesses.failed < FREE_GUESSES:
            return timedelta(0)
        doublings = min(guesses.failed - FREE_GUESSES, 10)
        return max(guesses.last + min(_FIRST_WAIT * (1 << doublings), _LONGEST_WAIT) - now, timedelta(0))

    def failed(self, source: str, account: str, now: datetime) -> None:
        """Count a wrong guess; called before the check, so that guesses sent at once all count."""
        guesses = self._guesses.pop((source, account), None)
        count = 1 if guesses is None or now - guesses.last > _FORGOTTEN_AFTER else guesses.failed + 1
        self._guesses[source, account] = _Guesses(count, now)
        while len(self._guesses) > _MAX_REMEMBERED:
            self._guesses.popitem(last=False)

    def succeeded(self, source: str, account: str) -> None:
        """Forget the guesses of this source at this account."""
        self._guesses.pop((source, account), None)
