"""Signing in at the gate: answered here, with a secret that opens nothing but the gate."""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from read_gate.reader_side import ReaderSide
from read_gate.tables import LOGIN_ARGUMENTS

GREETING: Final = b"* OK IMAP4rev1 gate\r\n"
# RFC 9051 §6.1.1; no SASL-IR, since the reader does not use it.
_CAPABILITIES: Final = b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n"
# CAPABILITY is asked once or twice before login; the rest is somebody who plays.
_MOST_LINES: Final = 10


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Whose account was asked for rightly, and the tag that waits for an answer."""

    account_id: str
    tag: bytes


def sign_in(side: ReaderSide, secrets: Mapping[str, SecretStr]) -> SignedIn | None:
    """Hold the dialogue until the reader has signed in; None where it did not, and the connection is over.

    Raises `GuardRefusal`, `TooSlow`, OSError.
    """
    side.say(GREETING)
    for _ in range(_MOST_LINES):
        line = side.line()
        if line is None:
            return None
        tag, _, command = line[:-2].partition(b" ")
        verb, _, arguments = command.partition(b" ")
        match verb:
            case b"CAPABILITY":
                side.say(_CAPABILITIES + tag + b" OK done\r\n")
            case b"NOOP":
                side.say(tag + b" OK done\r\n")
            case b"LOGOUT":
                side.say(b"* BYE\r\n" + tag + b" OK done\r\n")
                return None
            case _:
                said = _plain(side) if verb == b"AUTHENTICATE" else _login(arguments)
                account_id = None if said is None else _account(said, secrets)
                if account_id is None:
                    side.say(tag + b" NO [AUTHENTICATIONFAILED] not the gate's secret for this account\r\n")
                    return None
                return SignedIn(account_id, tag)
    return None


def _login(arguments: bytes) -> tuple[bytes, bytes] | None:
    match = LOGIN_ARGUMENTS.fullmatch(arguments)
    return None if match is None else (_unquoted(match[1]), _unquoted(match[2]))


def _unquoted(string: bytes) -> bytes:
    if not string.startswith(b'"'):
        return string
    return string[1:-1].replace(b'\\"', b'"').replace(b"\\\\", b"\\")


def _plain(side: ReaderSide) -> tuple[bytes, bytes] | None:
    # RFC 4616 §2: [authzid] NUL authcid NUL passwd; the guard let base64 alone through.
    side.say(b"+ \r\n")
    line = side.line()
    parts = base64.b64decode(line or b"").split(b"\0") if line != b"*\r\n" else []
    return (parts[1], parts[2]) if len(parts) == 3 and not parts[0] else None  # noqa: PLR2004 - RFC 4616 §2


def _account(said: tuple[bytes, bytes], secrets: Mapping[str, SecretStr]) -> str | None:
    user, password = said
    found: str | None = None
    # Every secret is compared, so that time tells nothing.
    for account_id, secret in secrets.items():
        is_right = hmac.compare_digest(secret.get_secret_value().encode(), password)
        if is_right and user == account_id.encode():
            found = account_id
    return found
