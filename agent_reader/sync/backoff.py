"""How long a server is left alone after a failure. A time that it stated itself is obeyed."""

from typing import Final

from agent_reader.errors import Throttled

# A server that restarts is back within seconds; one that is down is asked every five minutes.
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 300.0
# Many refused logins in a row lock an account.
_REFUSED_LOGIN_PAUSE_SECONDS: Final = 300.0
# Asking sooner makes it longer.
_THROTTLED_PAUSE_SECONDS: Final = 1_800.0
# Gmail counts by the day and blocks for up to one: hours, not minutes.
_QUOTA_PAUSE_SECONDS: Final = 3_600.0
_LONGEST_QUOTA_PAUSE_SECONDS: Final = 6 * 3_600.0


def pause_after(failures: int, code: str, chance: float) -> float:
    """Return the seconds to wait after so many failures in a row; `chance` in 0..1 spreads the clients of a server."""
    pause = min(_LONGEST_PAUSE_SECONDS, _doubled(_FIRST_PAUSE_SECONDS, failures))
    if code == "login_refused":
        pause = max(pause, _REFUSED_LOGIN_PAUSE_SECONDS)
    elif code == "throttled":
        pause = max(pause, _THROTTLED_PAUSE_SECONDS)
    return pause * (0.75 + chance / 2)


def pause_of(throttled: Throttled, failures: int, chance: float) -> float:
    """Return the seconds that a server wants to be left alone: never fewer than it stated."""
    if throttled.wait_seconds is not None:
        return throttled.wait_seconds * (1.0 + chance / 10)
    if throttled.is_quota:
        return min(_LONGEST_QUOTA_PAUSE_SECONDS, _doubled(_QUOTA_PAUSE_SECONDS, failures)) * (1.0 + chance / 10)
    return pause_after(failures, throttled.code, chance)


def _doubled(first: float, failures: int) -> float:
    return first * 2.0 ** min(failures - 1, 16)
