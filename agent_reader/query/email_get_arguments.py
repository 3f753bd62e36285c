"""The arguments of Email/get, told apart from what nobody may ask (RFC 8621 §4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.errors import invalid
from shared.message import JSON, BadHeaderProperty, UnknownProperty, check_properties

# More names than RFC 8621 has properties several times over, header fields included.
_MAX_PROPERTIES: Final = 200

# What Email/get and Email/parse (RFC 8621 §4.9) both have.
WHAT_IS_SHOWN: Final = frozenset(
    {
        "properties",
        "bodyProperties",
        "fetchTextBodyValues",
        "fetchHTMLBodyValues",
        "fetchAllBodyValues",
        "maxBodyValueBytes",
    }
)
_ARGUMENTS: Final = frozenset({"accountId", "ids", *WHAT_IS_SHOWN})


@dataclass(frozen=True, slots=True)
class EmailGetArguments:
    """The arguments of Email/get but accountId; `ids` is None for all."""

    ids: tuple[str, ...] | None
    properties: tuple[str, ...] | None = None
    body_properties: tuple[str, ...] | None = None
    fetch_text: bool = False
    fetch_html: bool = False
    fetch_all: bool = False
    max_body_value_bytes: int = 0


def parse_email_get(untrusted: Mapping[str, JSON]) -> EmailGetArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    arguments.known_only(untrusted, _ARGUMENTS)
    parsed = EmailGetArguments(
        ids=_strings("ids", untrusted.get("ids")),
        properties=_strings("properties", untrusted.get("properties")),
        body_properties=_strings("bodyProperties", untrusted.get("bodyProperties")),
        fetch_text=_flag(untrusted, "fetchTextBodyValues"),
        fetch_html=_flag(untrusted, "fetchHTMLBodyValues"),
        fetch_all=_flag(untrusted, "fetchAllBodyValues"),
        max_body_value_bytes=arguments.unsigned_value("maxBodyValueBytes", untrusted.get("maxBodyValueBytes", 0)),
    )
    check_asked(parsed.properties or (), parsed.body_properties or ())
    return parsed


def check_asked(properties: Sequence[str], body_properties: Sequence[str]) -> None:
    """Raise `QueryRefused` for the first property that does not exist, and for more of them than there are."""
    for name, spelled in (("properties", properties), ("bodyProperties", body_properties)):
        if len(spelled) > _MAX_PROPERTIES:
            raise invalid(name, f"has more than {_MAX_PROPERTIES} names.")
    try:
        check_properties(properties, ())
    except (UnknownProperty, BadHeaderProperty) as error:
        raise invalid("properties", f"{str(error)[:300]}.") from None
    try:
        check_properties((), body_properties)
    except (UnknownProperty, BadHeaderProperty) as error:
        raise invalid("bodyProperties", f"{str(error)[:300]}.") from None


def _strings(name: str, untrusted: JSON) -> tuple[str, ...] | None:
    if untrusted is None:
        return None
    found = arguments.list_value(name, untrusted)
    if {str}.issuperset(map(type, found)):
        return tuple(found)  # type: ignore[arg-type]  # as was just seen, in one step where a page of ids is named
    return tuple(arguments.string_value(name, each) for each in found)


def _flag(untrusted: Mapping[str, JSON], name: str) -> bool:
    return arguments.boolean_value(name, untrusted.get(name, False))
