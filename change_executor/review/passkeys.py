"""Passkeys (WebAuthn Level 3): making one, and being let in by one. A second way in, or the only one.

The browser's part is a few lines of `page.js`; what it sends is JSON as `PublicKeyCredential.toJSON()` writes it, and
is checked by the library `webauthn`. Each passkey is discoverable and verifies its user, so that it stands alone: no
name is typed, and whoever only holds the device is not let in.
"""

import hashlib
import hmac
import ipaddress
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar
from urllib.parse import urlsplit

import webauthn
from sqlalchemy import Connection, Row, insert, select, update
from webauthn.helpers import (
    base64url_to_bytes,
    bytes_to_base64url,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from change_executor.config import Review
from change_executor.journal import schema
from change_executor.journal.journal import Writing
from change_executor.review.people import RandomOctets

# What a browser gives a person to find their device, and a little more.
CHALLENGE_LASTS: Final = timedelta(minutes=5)
# A phone, a laptop, a key in the drawer.
MAX_PASSKEYS: Final = 10

_RANDOM_OCTETS: Final = 16
_END_OCTETS: Final = 8
_NAME: Final = "Mailwarrant"

# What the library raises for octets that are not what they should be: its own, and those of what it reads with.
_REFUSALS: Final = (WebAuthnException, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)

Result = TypeVar("Result")

_passkeys = schema.passkeys.c


class PasskeyRefused(Exception):  # noqa: N818 - a refusal is what it is
    """What the browser sent proves nothing: not made here, not for this, too late, or not of anybody known."""


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """Who asks for a passkey (WebAuthn §4): the RP ID, which is a host's name, and the page's origin."""

    id: str
    origin: str


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey as the settings list it; `id` is the credential id in base64url."""

    id: str
    created_at: datetime
    used_at: datetime | None


def relying_party(review: Review) -> RelyingParty | None:
    """Return the party that the page's address makes, or None where browsers offer no passkeys: an IP, plain http."""
    address = urlsplit(review.url)
    host = address.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        is_secure = address.scheme == "https" or host == "localhost"
        return RelyingParty(host, review.url) if is_secure else None
    return None


class Challenges:
    """Challenges that take no memory until one is met: random octets, when they end, and a MAC for what they are for.

    So asking for challenges without end pushes out nobody else's, and each is met at most once. Thread-safe.
    """

    def __init__(self, random_octets: RandomOctets) -> None:
        self._random_octets = random_octets
        self._key = random_octets(32)
        self._met: dict[bytes, datetime] = {}
        self._lock = threading.Lock()

    def new(self, purpose: str, now: datetime) -> bytes:
        """Return a challenge for a purpose, good for five minutes."""
        end = int((now + CHALLENGE_LASTS).timestamp()).to_bytes(_END_OCTETS, "big")
        body = self._random_octets(_RANDOM_OCTETS) + end
        return body + self._mac(purpose, body)

    def is_good(self, untrusted: bytes, purpose: str, now: datetime) -> bool:
        """Whether this was made here for this purpose, has not ended and was not met yet."""
        body = untrusted[: _RANDOM_OCTETS + _END_OCTETS]
        if not hmac.compare_digest(untrusted[len(body) :], self._mac(purpose, body)):
            return False
        end = datetime.fromtimestamp(int.from_bytes(body[_RANDOM_OCTETS:], "big"), UTC)
        with self._lock:
            return now < end and untrusted not in self._met

    def met(self, challenge: bytes, now: datetime) -> None:
        """Take note that a challenge was met, so that what met it is worth nothing a second time."""
        with self._lock:
            self._met = {each: at for each, at in self._met.items() if now - at <= CHALLENGE_LASTS}
            self._met[challenge] = now

    def _mac(self, purpose: str, body: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\0" + body, "sha256")


def creation_options(party: RelyingParty, name: str, known: Sequence[Passkey], challenge: bytes) -> str:
    """Return the options for `navigator.credentials.create()` as JSON (WebAuthn §5.4)."""
    options = webauthn.generate_registration_options(
        rp_id=party.id,
        rp_name=_NAME,
        user_name=name,
        # The same for each passkey of a person, so that a device keeps one of them.
        user_id=hashlib.sha256(f"mailwarrant:{name}".encode()).digest(),
        challenge=challenge,
        timeout=int(CHALLENGE_LASTS.total_seconds() * 1000),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=base64url_to_bytes(each.id)) for each in known],
    )
    return webauthn.options_to_json(options)


def request_options(party: RelyingParty, known: Sequence[Passkey], challenge: bytes) -> str:
    """Return the options for `navigator.credentials.get()` as JSON (WebAuthn §5.5); `known` empty for anybody's."""
    options = webauthn.generate_authentication_options(
        rp_id=party.id,
        challenge=challenge,
        timeout=int(CHALLENGE_LASTS.total_seconds() * 1000),
        allow_credentials=[PublicKeyCredentialDescriptor(id=base64url_to_bytes(each.id)) for each in known],
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return webauthn.options_to_json(options)


def add_passkey(
    writing: Writing, party: RelyingParty, challenges: Challenges, *, purpose: str, name: str, untrusted: str
) -> None:
    """Keep the passkey that a browser made for a person (WebAuthn §7.1). Raises `PasskeyRefused`."""
    challenge = _challenge_in(untrusted, parse_registration_credential_json)
    made = _verified(
        lambda: webauthn.verify_registration_response(
            credential=untrusted,
            expected_challenge=_good(challenges, challenge, purpose, writing.now),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            require_user_verification=True,
        )
    )
    challenges.met(challenge, writing.now)
    passkey_id = bytes_to_base64url(made.credential_id)
    known = list_passkeys(writing.connection, name)
    if len(known) >= MAX_PASSKEYS or _row(writing.connection, passkey_id) is not None:
        raise PasskeyRefused
    writing.connection.execute(
        insert(schema.passkeys).values(
            id=passkey_id,
            person=name,
            public_key=bytes_to_base64url(made.credential_public_key),
            sign_count=made.sign_count,
            created_at=writing.now,
            used_at=None,
        )
    )
    writing.append("passkey:added", passkey_id, f"person:{name}", {"person": name})


def use_passkey(writing: Writing, party: RelyingParty, challenges: Challenges, *, purpose: str, untrusted: str) -> str:
    """Return the name of whom a passkey proves to be there (WebAuthn §7.2). Raises `PasskeyRefused`."""
    challenge = _challenge_in(untrusted, parse_authentication_credential_json)
    row = _row(writing.connection, _verified(lambda: parse_authentication_credential_json(untrusted)).id)
    if row is None:
        raise PasskeyRefused
    used = _verified(
        lambda: webauthn.verify_authentication_response(
            credential=untrusted,
            expected_challenge=_good(challenges, challenge, purpose, writing.now),
            expected_rp_id=party.id,
            expected_origin=party.origin,
            credential_public_key=base64url_to_bytes(row.public_key),
            credential_current_sign_count=row.sign_count,
            require_user_verification=True,
        )
    )
    challenges.met(challenge, writing.now)
    writing.connection.execute(
        update(schema.passkeys)
        .where(_passkeys.id == row.id)
        .values(sign_count=used.new_sign_count, used_at=writing.now)
    )
    name: str = row.person
    writing.append("passkey:used", row.id, f"person:{name}", {"person": name})
    return name


def list_passkeys(connection: Connection, name: str) -> list[Passkey]:
    """Return the passkeys of a person, oldest first."""
    rows = connection.execute(
        select(_passkeys.id, _passkeys.created_at, _passkeys.used_at)
        .where(_passkeys.person == name)
        .order_by(_passkeys.created_at, _passkeys.id)
    )
    return [Passkey(*row) for row in rows]


def _row(connection: Connection, passkey_id: str) -> Row[tuple[str, str, str, int, datetime, datetime]] | None:
    return connection.execute(select(schema.passkeys).where(_passkeys.id == passkey_id)).first()


def _good(challenges: Challenges, challenge: bytes, purpose: str, now: datetime) -> bytes:
    if not challenges.is_good(challenge, purpose, now):
        raise PasskeyRefused
    return challenge


def _challenge_in(untrusted: str, parse: Callable[[str], RegistrationCredential | AuthenticationCredential]) -> bytes:
    return _verified(lambda: parse_client_data_json(parse(untrusted).response.client_data_json).challenge)


def _verified(work: Callable[[], Result]) -> Result:
    try:
        return work()
    except _REFUSALS as error:
        raise PasskeyRefused from error
