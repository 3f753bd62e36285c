"""Result references (RFC 8620 §3.7): arguments taken from the answers of earlier calls in the same request."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from agent_reader.jmap.errors import ErrorType, MethodError

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")


@dataclass(slots=True)
class Response:
    """One response of a request; `encoded` is the JSON of its arguments, decoded once when first referred to."""

    name: str
    encoded: bytes = field(repr=False)
    call_id: str
    _decoded: Any = None

    def arguments(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the arguments as JSON values."""
        if self._decoded is None:
            self._decoded = msgspec.json.decode(self.encoded)
        return self._decoded


@dataclass(slots=True)
class Budget:
    """How many octets of answers the references of one request may still bring in: each may name all before it."""

    octets: int

    def spend(self, octets: int) -> None:
        """Take octets off, or raise requestTooLarge."""
        self.octets -= octets
        if self.octets < 0:
            raise MethodError(
                ErrorType.REQUEST_TOO_LARGE, "The result references of this request bring in too much. Use fewer."
            )


def resolved(arguments: Mapping[str, Any], earlier: Sequence[Response], budget: Budget) -> dict[str, Any]:
    """Return the arguments with each `#name` replaced. Raises `MethodError`."""
    whole: dict[str, Any] = {}
    for name, value in arguments.items():
        if not name.startswith("#"):
            whole[name] = value
            continue
        plain = name[1:]
        if plain in arguments:
            raise MethodError(
                ErrorType.INVALID_ARGUMENTS, "An argument is given both by value and by reference.", (plain,)
            )
        whole[plain] = _referred(value, earlier, budget)
    return whole


def _referred(reference: object, earlier: Sequence[Response], budget: Budget) -> Any:  # noqa: ANN401 - any JSON value
    match reference:
        case {"resultOf": str(call_id), "name": str(name), "path": str(path)}:
            pass
        case _:
            raise _invalid("a ResultReference has the strings `resultOf`, `name` and `path`")
    # The first response with that call id counts, also where ids repeat.
    source = next((response for response in earlier if response.call_id == call_id), None)
    if source is None:
        raise _invalid("no earlier call has the id of `resultOf`")
    if source.name != name:
        raise _invalid("the call of `resultOf` did not answer with `name`")
    budget.spend(len(source.encoded))
    return _pointed_at(source.arguments(), _steps(path))


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/") or _BAD_ESCAPE.search(path):
        raise _invalid("`path` is no JSON Pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _pointed_at(value: Any, steps: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    for position, step in enumerate(steps):
        match value:
            case dict():
                if step not in value:
                    raise _invalid("`path` names a member that is not there")
                value = value[step]
            case list() if step == "*":
                return _mapped(value, steps[position + 1 :])
            case list():
                if _INDEX.fullmatch(step) is None or int(step) >= len(value):
                    raise _invalid("`path` names an item that is not there")
                value = value[int(step)]
            case _:
                raise _invalid("`path` goes on where there is neither an object nor an array")
    return value


def _mapped(items: list[Any], steps: Sequence[str]) -> list[Any]:
    """Apply the rest of a path to each item; what comes back as an array is taken apart, one level (RFC 8620 §3.7)."""
    found: list[Any] = []
    for item in items:
        value = _pointed_at(item, steps)
        if isinstance(value, list):
            found.extend(value)
        else:
            found.append(value)
    return found


def _invalid(why: str) -> MethodError:
    return MethodError(ErrorType.INVALID_RESULT_REFERENCE, f"The reference cannot be resolved: {why}.")
