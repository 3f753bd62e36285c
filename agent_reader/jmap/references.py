"""Result references (RFC 8620 §3.7): arguments taken from the answers of earlier calls in the same request."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from agent_reader.jmap.errors import ErrorType, MethodError
from agent_reader.jmap.sheet import Sheet

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")

# One level of JSON that this server has written; what is below stays as it stands.
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Response:
    """One response of a request; the JSON of its arguments stands on the sheet from `start` up to `end`."""

    name: str
    call_id: str
    sheet: Sheet = field(repr=False)
    start: int
    end: int

    @property
    def octets(self) -> int:
        """How long the JSON is."""
        return self.end - self.start

    @property
    def encoded(self) -> bytes:
        """The JSON of the arguments."""
        return self.sheet.read(self.start, self.end)


@dataclass(slots=True)
class Budget:
    """How many octets the references of one request may still read through and bring in: each may name all before."""

    to_read: int
    to_bring_in: int

    def read(self, octets: int) -> None:
        """Take octets off, or raise requestTooLarge."""
        self.to_read -= octets
        self._check(self.to_read)

    def bring_in(self, octets: int) -> None:
        """Take octets off, or raise requestTooLarge."""
        self.to_bring_in -= octets
        self._check(self.to_bring_in)

    def _check(self, left: int) -> None:
        if left < 0:
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
    budget.read(source.octets)
    found = _pointed_at(source.encoded, _steps(path))
    octets = len(found) if isinstance(found, bytes) else sum(len(each) + 1 for each in found)
    budget.bring_in(octets)
    return _decoded(found) if isinstance(found, bytes) else [_decoded(each) for each in found]


def _decoded(encoded: bytes) -> Any:  # noqa: ANN401 - any JSON value
    return msgspec.json.decode(encoded)


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/") or _BAD_ESCAPE.search(path):
        raise _invalid("`path` is no JSON Pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def _pointed_at(encoded: bytes, steps: Sequence[str]) -> bytes | list[bytes]:
    """The JSON that a path leads to, or of each item behind a `*`. Nothing that it passes by is made an object of."""
    for position, step in enumerate(steps):
        match encoded[:1]:
            case b"{":
                members = _MEMBERS.decode(encoded)
                if step not in members:
                    raise _invalid("`path` names a member that is not there")
                encoded = bytes(members[step])
            case b"[" if step == "*":
                return _mapped(_ITEMS.decode(encoded), steps[position + 1 :])
            case b"[":
                items = _ITEMS.decode(encoded)
                if _INDEX.fullmatch(step) is None or int(step) >= len(items):
                    raise _invalid("`path` names an item that is not there")
                encoded = bytes(items[int(step)])
            case _:
                raise _invalid("`path` goes on where there is neither an object nor an array")
    return encoded


def _mapped(items: list[msgspec.Raw], steps: Sequence[str]) -> list[bytes]:
    """Apply the rest of a path to each item; what comes back as an array is taken apart, one level (RFC 8620 §3.7)."""
    found: list[bytes] = []
    for item in items:
        value = _pointed_at(bytes(item), steps)
        if isinstance(value, list):
            found.extend(value)
        elif value[:1] == b"[":
            found.extend(bytes(each) for each in _ITEMS.decode(value))
        else:
            found.append(value)
    return found


def _invalid(why: str) -> MethodError:
    return MethodError(ErrorType.INVALID_RESULT_REFERENCE, f"The reference cannot be resolved: {why}.")
