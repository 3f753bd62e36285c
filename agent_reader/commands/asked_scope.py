"""From what a person typed to a scope, a budget and a lifetime; a mistake is named with its option."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from agent_reader.scope import Depth, Scope
from shared.settings import ConfigurationError
from shared.tokens import DEFAULT_LIFETIME_DAYS

_BUDGET: Final = re.compile(r"(\d{1,12})([kM]?)", re.ASCII)
_UNITS: Final = {"": 1, "k": 1_000, "M": 1_000_000}
# Below this not even the session fits.
_LEAST_BUDGET: Final = 10_000
_DAYS: Final = re.compile(r"(\d{1,4})d?", re.ASCII)
_DOMAIN: Final = r"[^\s@,;<>()\[\]\\\"]{1,253}"
_SENDER: Final = re.compile(rf"(?:[^\s@,;<>()\[\]\\\"]{{1,64}}@)?(?P<domain>{_DOMAIN})")
_MAX_NOTE_CHARACTERS: Final = 500
# RFC 5890 §2.3.2.5: what a label begins with that stands for one beyond ASCII.
_ACE: Final = "xn--"


def asked_scope(
    known_accounts: Iterable[str],
    *,
    accounts: Sequence[str] = (),
    mailboxes: Sequence[str] = (),
    since: datetime | None = None,
    senders: Sequence[str] = (),
    depth: Depth = Depth.FULL,
    sign_in_mail: bool = False,
) -> Scope:
    """Return the scope that was asked for. Raises `ConfigurationError`."""
    known = tuple(known_accounts)
    for account in accounts:
        if account not in known:
            raise ConfigurationError(
                "--account", f"there is no account {account[:60]!r}.", f"It has: {', '.join(known)}."
            )
    return Scope(
        accounts=tuple(dict.fromkeys(accounts)) or None,
        mailboxes=tuple(dict.fromkeys(mailboxes)) or None,
        received_since=None if since is None else (since if since.tzinfo else since.replace(tzinfo=UTC)),
        senders=tuple(dict.fromkeys(form for each in senders for form in _spellings(_sender(each)))) or None,
        depth=depth,
        sign_in_mail=sign_in_mail,
    )


def asked_budget(text: str | None) -> int | None:
    """Return octets an hour, None for no limit. Raises `ConfigurationError`."""
    if text is None:
        return None
    found = _BUDGET.fullmatch(text)
    octets = 0 if found is None else int(found[1]) * _UNITS[found[2]]
    if octets < _LEAST_BUDGET:
        raise ConfigurationError(
            "--budget", f"{text[:30]!r} is no number of octets an hour.", "Write 500k or 20M; 10k is the least."
        )
    return octets


def asked_lifetime(text: str | None, now: datetime) -> timedelta:
    """Return how long a token opens: days (`30d`) or until a date (UTC). Raises `ConfigurationError`."""
    if text is None:
        return timedelta(days=DEFAULT_LIFETIME_DAYS)
    days = _DAYS.fullmatch(text)
    if days is not None:
        return timedelta(days=int(days[1]))
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            "--expires", f"{text[:40]!r} is neither days nor a date.", "Write 30d, or 2027-03-31."
        ) from None
    lifetime = (until if until.tzinfo else until.replace(tzinfo=UTC)) - now
    if lifetime <= timedelta(0):
        raise ConfigurationError("--expires", "is in the past.", "Name a day that is still to come.")
    return lifetime


def asked_note(text: str) -> str:
    """Return the note. Raises `ConfigurationError`."""
    if len(text) > _MAX_NOTE_CHARACTERS:
        raise ConfigurationError("--note", f"is longer than {_MAX_NOTE_CHARACTERS} characters.", "Say it shorter.")
    return text


def _sender(text: str) -> str:
    found = _SENDER.fullmatch(text.removeprefix("@"))
    if found is None or "." not in found["domain"].strip("."):
        raise ConfigurationError(
            "--sender",
            f"{text[:60]!r} is neither an address nor a domain.",
            "Write ann@example.org, or example.org for everybody there.",
        )
    return text.removeprefix("@").lower()


def _spellings(sender: str) -> tuple[str, ...]:
    """The sender as it was typed and, of a domain beyond ASCII, in both spellings that mail has (RFC 5890 §2.3.2.1).

    One letter for another as in IDNA of 2003 (a double s) would be somebody else's domain: nothing is mapped.
    """
    local, at, domain = sender.rpartition("@")
    labels = domain.split(".")
    spelled = (".".join(map(_encoded, labels)), ".".join(map(_decoded, labels)))
    return tuple(dict.fromkeys((sender, *(f"{local}{at}{each}" for each in spelled))))


def _encoded(label: str) -> str:
    return label if label.isascii() else _ACE + unicodedata.normalize("NFC", label).encode("punycode").decode("ascii")


def _decoded(label: str) -> str:
    if not label.startswith(_ACE):
        return label
    try:
        decoded = label.removeprefix(_ACE).encode("ascii").decode("punycode")
    except UnicodeError:
        return label
    # What does not lead back stands for another label.
    return decoded if _encoded(decoded) == label else label
