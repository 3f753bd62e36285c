"""The arguments of a tool call, taken as models write them: numbers and lists as strings, null for left out.

What is meant is taken; what is not understood is refused by its name, never passed over.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from agent_reader.tool_answers.refusals import bad_argument, missing_argument, unknown_argument

_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(?:\.0{1,6})?", re.ASCII)
_TRUE: Final = frozenset({"true", "yes", "1"})
_FALSE: Final = frozenset({"false", "no", "0"})
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,255}", re.ASCII)
_SEPARATORS: Final = re.compile(r"[\s,;]+")

# A question is a line; what is longer is a pasted page.
_MAX_TEXT_CHARACTERS: Final = 1_000


class Arguments:
    """One call's arguments; each is taken once, by name. `names` are those that the tool has.

    What is left out, null or empty is None. Raises `ToolRefused`: when it is made, for a name that the tool does not
    have, and when an argument is taken, for one that is not as it must be.
    """

    def __init__(self, tool: str, untrusted: Mapping[str, Any], names: tuple[str, ...]) -> None:
        if not set(untrusted) <= set(names):
            raise unknown_argument(tool, names)
        self._untrusted = {name: value for name, value in untrusted.items() if value is not None and value != ""}

    def text(self, name: str) -> str | None:
        """Return a string."""
        value = self._untrusted.get(name)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or len(value) > _MAX_TEXT_CHARACTERS:
            raise bad_argument(name, f"a text of at most {_MAX_TEXT_CHARACTERS} characters")
        return value.strip() or None

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """Return one of a few words."""
        value = self.text(name)
        if value is None:
            return default
        for choice in choices:
            if value.lower() == choice.lower():
                return choice
        raise bad_argument(name, f"one of {', '.join(choices)}")

    def number(self, name: str, least: int, most: int) -> int | None:
        """Return a whole number of a range."""
        value = self._untrusted.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
            value = int(value.strip().partition(".")[0])
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise bad_argument(name, f"a whole number from {least} to {most}")
        return value

    def flag(self, name: str) -> bool | None:
        """Return a yes or no."""
        value = self._untrusted.get(name)
        if value is None or isinstance(value, bool):
            return value
        spelled = str(value).strip().lower() if isinstance(value, str | int) else ""
        if spelled in _TRUE:
            return True
        if spelled in _FALSE:
            return False
        raise bad_argument(name, "true or false")

    def id(self, name: str, what: str) -> str:
        """Return one id; `what` says of what."""
        value = self._untrusted.get(name)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is None:
            raise missing_argument(name, f"the id of {what}")
        if not isinstance(value, str) or _ID.fullmatch(value.strip()) is None:
            raise bad_argument(name, f"the id of {what}, as other tools show it")
        return value.strip()

    def ids(self, name: str, most: int) -> tuple[str, ...]:
        """Return one id or several, each once: an array, a JSON array in a string, or ids with commas between."""
        value = self._untrusted.get(name)
        if value is None:
            raise missing_argument(name, "the ids of messages, such as search_mail shows")
        if isinstance(value, str):
            value = _listed(value)
        must = f"1 to {most} ids of messages, as other tools show them"
        if not isinstance(value, list) or not all(isinstance(each, str) and _ID.fullmatch(each) for each in value):
            raise bad_argument(name, must)
        ids = tuple(dict.fromkeys(value))
        if not 1 <= len(ids) <= most:
            raise bad_argument(name, must)
        return ids

    def moment(self, name: str) -> datetime | None:
        """Return a time in UTC: a date with time, or the beginning of a day."""
        value = self.text(name)
        if value is None:
            return None
        try:
            found = datetime.fromisoformat(value)
            return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
        except (ValueError, OverflowError):
            raise bad_argument(name, "a date like 2026-01-31 or 2026-01-31T14:00:00Z") from None


def _listed(text: str) -> object:
    if text.strip().startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
    return [piece for piece in _SEPARATORS.split(text) if piece]
