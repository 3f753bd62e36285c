"""What a watch knows from one run to the next: one small file of the agent's user, replaced whole at each step.

No word of mail is in it: ids, times and codes alone.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from shared.private_file import replace_private
from shared.settings import ConfigurationError

# What was received before is no news, whatever the index says: so no more ids than those of a month need be known.
REMEMBERED: Final = timedelta(days=30)

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class LastRun:
    """How the command ended last: its exit status, None where it was ended by its time limit or could not start."""

    at: datetime
    messages: int
    status: int | None
    code: str


@dataclass(frozen=True, slots=True)
class WatchState:
    """Where a watch stands.

    `email_state`: up to which all was looked at. `started_at`: the baseline; until the index was `settled`, what was
    received before it is none of the news. `seen`: Email id to the second it was received, of what was news once and of
    the baseline. `waiting`: ids for the next batch, oldest first. `given`: those whose command did not end yet.
    """

    account: str
    email_state: str
    started_at: datetime
    floor: datetime
    settled: bool = False
    seen: dict[str, int] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    failures: int = 0
    not_before: datetime | None = None
    last_run: LastRun | None = None
    # Why the reader cannot be asked now, and since when; None while it can.
    unreachable: str | None = None

    def forgetting(self, now: datetime) -> "WatchState":
        """Return it without ids that no look can find again."""
        floor = max(self.floor, now - REMEMBERED)
        if floor == self.floor:
            return self
        since = int(floor.timestamp())
        return replace(self, floor=floor, seen={key: at for key, at in self.seen.items() if at >= since})


class StateFile:
    """The file of one watch. Raises `ConfigurationError` where it cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def sole_use(self) -> Iterator[None]:
        """Keep a second watch with the same file out for as long as the block lasts."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(
                self._path.with_name(f"{self._path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise self._unusable(error) from None
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigurationError(
                    str(self._path),
                    "another watch is running with this file.",
                    "Give each watch a file of its own (--state-file).",
                ) from None
            yield
        finally:
            os.close(lock)

    def read(self) -> WatchState | None:
        """Return what is kept, None before the first look."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(error) from None
        try:
            return _unpacked(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable(error) from None

    def write(self, state: WatchState) -> None:
        """Keep a state; on disk, whole, once this returns."""
        kept = json.dumps({"version": _VERSION} | asdict(state), default=_packed)
        try:
            replace_private(self._path, kept.encode())
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            str(self._path),
            f"cannot be used ({type(error).__name__}).",
            "Mend its owner or mode, or remove it: the next look is then a first one, and tells no mail from before.",
        )


def _packed(value: object) -> str:
    assert isinstance(value, datetime)
    return value.astimezone(UTC).isoformat()


def _unpacked(content: Any) -> WatchState:  # noqa: ANN401 - JSON of a file
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise ValueError("another version")
    last = content["last_run"]
    return WatchState(
        account=str(content["account"]),
        email_state=str(content["email_state"]),
        started_at=datetime.fromisoformat(content["started_at"]),
        floor=datetime.fromisoformat(content["floor"]),
        settled=bool(content["settled"]),
        seen={str(key): int(at) for key, at in content["seen"].items()},
        waiting=tuple(str(each) for each in content["waiting"]),
        given=tuple(str(each) for each in content["given"]),
        failures=int(content["failures"]),
        not_before=None if content["not_before"] is None else datetime.fromisoformat(content["not_before"]),
        last_run=None
        if last is None
        else LastRun(datetime.fromisoformat(last["at"]), int(last["messages"]), last["status"], str(last["code"])),
        unreachable=None if content["unreachable"] is None else str(content["unreachable"]),
    )
