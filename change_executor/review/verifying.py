"""Whether somebody is who they say: by the password or the passkey in a form, and slowly for whoever guesses."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import anyio
from starlette.requests import Request

from change_executor.journal.journal import Writing
from change_executor.review.error_page import PageError, Refusal
from change_executor.review.passkeys import PasskeyRefused, use_passkey
from change_executor.review.people import password_hash, store_password
from change_executor.review.room import Room
from change_executor.review.sessions import known_browser

# Those who wait hold their request open; past this a person is better told to come back.
_MAX_WAITING_FOR_A_CHECK: Final = 20

# Where the connection left whose process is at its other end.
_PEER_UID: Final = "mailwarrant.peer_uid"

# No name is longer; what guesses are remembered by must not grow with what is sent.
MAX_NAME_CHARACTERS: Final = 41

FORBIDDEN: Final = 403
_TOO_MANY_REQUESTS: Final = 429

WRONG_PASSKEY: Final = "That passkey is not known here any more, or its time was over. Try again."


@dataclass(frozen=True, slots=True)
class Wrong:
    """Why somebody was not believed: a sentence, and the status of the answer."""

    says: str
    status: int = FORBIDDEN


async def verify_password(room: Room, request: Request, name: str, untrusted_password: str, wrong: str) -> Wrong | None:
    """Return None where this is the password of this person, else why not; `wrong` says that it is not the one.

    Guesses are slowed by where they come from and the account together. Raises `PageError`.
    """
    now = room.clock()
    source = await room.in_thread(_source, room, request, name)
    wait = room.throttle.wait(source, name, now)
    if wait > timedelta(0):
        return Wrong(_later(wait), _TOO_MANY_REQUESTS)
    room.throttle.failed(source, name, now)
    if room.password_threads.statistics().tasks_waiting >= _MAX_WAITING_FOR_A_CHECK:
        raise PageError(Refusal.TOO_MANY_SIGN_INS)
    if not await anyio.to_thread.run_sync(_check, room, name, untrusted_password, limiter=room.password_threads):
        return Wrong(wrong)
    room.throttle.succeeded(source, name)
    return None


def verify_passkey(room: Room, writing: Writing, purpose: str, untrusted: str) -> str:
    """Return the name of the person whose passkey answered, in this transaction. Raises `PasskeyRefused`."""
    if room.party is None:
        raise PasskeyRefused
    return use_passkey(writing, room.party, room.challenges, purpose=purpose, untrusted=untrusted)


def _source(room: Room, request: Request, name: str) -> str:
    # Behind a proxy all come from one place. A browser in which this person was signed in before is told apart, so
    # that whoever guesses there does not slow the person too.
    secret = request.cookies.get(room.cookie_name())
    if secret:
        with room.journal.reading() as connection:
            known = known_browser(connection, secret, name)
        if known is not None:
            return known
    uid = request.scope.get("extensions", {}).get(_PEER_UID)
    if uid is not None:
        return f"uid:{uid}"
    return request.client.host if request.client is not None else "local"


def _check(room: Room, name: str, untrusted_password: str) -> bool:
    stored = password_hash(room.journal, name)
    if not room.passwords.matches(stored, untrusted_password):
        return False
    assert stored is not None, "nobody has no password"
    if room.passwords.needs_rehash(stored):
        renewed = room.passwords.hash(untrusted_password)
        with room.journal.writing() as writing:
            store_password(writing, name, renewed, rehash=True)
    return True


def _later(wait: timedelta) -> str:
    seconds = max(int(wait.total_seconds() + 0.999), 1)
    when = f"{seconds} seconds" if seconds < 120 else f"{(seconds + 59) // 60} minutes"  # noqa: PLR2004 - two minutes
    if seconds == 1:
        when = "1 second"
    return f"Too many guesses. Try again in {when}."
