"""From untrusted octets to a Request (RFC 8620 §3.3), or the one request-level problem (§3.6.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_reader.door.limits import Limits
from agent_reader.jmap import problems
from agent_reader.jmap.capabilities import KNOWN_CAPABILITIES
from agent_reader.query.arguments import is_id
from shared import ijson


@dataclass(frozen=True, slots=True)
class Invocation:
    """One method call (RFC 8620 §3.2)."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked; `created_ids` is None where the client sent none."""

    using: frozenset[str]
    calls: tuple[Invocation, ...]
    created_ids: Mapping[str, str] | None


def check_content_type(fields: Sequence[str]) -> None:
    """Raise notJSON for another content type than application/json, and for another `charset` than UTF-8.

    Of two fields one program reads the first, and the next one the last (RFC 9110 §5.3): they are none.
    """
    media_type, _, parameters = (fields[0] if len(fields) == 1 else "").partition(";")
    if media_type.strip().lower() != "application/json":
        raise problems.not_json("another content type")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        # Others say nothing of how the octets are to be read (RFC 8259 §11).
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() != "utf-8":
            raise problems.not_json("another character set than UTF-8")


def parse_request(untrusted_body: bytes, limits: Limits) -> Request:
    """Return the Request in a body, or raise a `Problem`; unknown members are ignored (RFC 8620 §3.3)."""
    try:
        value = ijson.load(untrusted_body, refuse_noncharacters=True)
    except ijson.NotIJson as error:
        raise problems.not_json(str(error)) from None
    if not isinstance(value, dict):
        raise problems.not_request("it is no object")
    using = value.get("using")
    if not isinstance(using, list) or not all(isinstance(capability, str) for capability in using):
        raise problems.not_request("`using` is no array of strings")
    calls = value.get("methodCalls")
    if not isinstance(calls, list):
        raise problems.not_request("`methodCalls` is no array")
    invocations = tuple(_invocation(call) for call in calls)
    created_ids = _created_ids(value)
    if not set(using) <= set(KNOWN_CAPABILITIES):
        raise problems.unknown_capability(KNOWN_CAPABILITIES)
    if len(invocations) > limits.max_calls_in_request:
        raise problems.too_many_calls(limits.max_calls_in_request)
    return Request(frozenset(using), invocations, created_ids)


def _invocation(call: object) -> Invocation:
    match call:
        case [str(name), dict(arguments), str(call_id)]:
            return Invocation(name, arguments, call_id)
        case _:
            raise problems.not_request("a method call is no triple of name, arguments and call id")


def _created_ids(value: dict[str, Any]) -> dict[str, str] | None:
    created_ids = value.get("createdIds")
    if created_ids is None:
        return None
    if not isinstance(created_ids, dict) or not all(map(is_id, (*created_ids.keys(), *created_ids.values()))):
        raise problems.not_request("`createdIds` is no object of ids")
    return created_ids
