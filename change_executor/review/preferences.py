"""What one browser prefers, kept in cookies of its own: nothing secret, nothing that decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KEYS_COOKIE: Final = "mailwarrant_keys"
NOTIFY_COOKIE: Final = "mailwarrant_notify"

OFF: Final = "off"
ON: Final = "on"

# A year; then a browser is asked again.
PREFERENCE_SECONDS: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Preferences:
    """`keys`: single letters act as shortcuts; `notify`: this browser tells of new proposals."""

    keys: bool = True
    notify: bool = False


DEFAULTS: Final = Preferences()


def preferences_from(untrusted_cookies: Mapping[str, str], prefix: str = "") -> Preferences:
    """Return what a browser's cookies say; each preference has a default. `prefix` stands before their names."""
    return Preferences(
        keys=untrusted_cookies.get(prefix + KEYS_COOKIE) != OFF,
        notify=untrusted_cookies.get(prefix + NOTIFY_COOKIE) == ON,
    )
