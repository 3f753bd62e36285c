"""Email/get with the extension for agents: its properties, a budget over the answer, and texts read in pieces."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from agent_reader.query import arguments
from agent_reader.query.agent_properties import (
    AGENT_PROPERTIES,
    NOT_FETCHED,
    Attached,
    cleaned,
    flags_of,
    has_unkept_body,
    new_text,
    text_of_attachment,
    texts_in,
)
from agent_reader.query.email_get import EmailGetArguments, email_as_asked, parse_email_get, reads_messages
from agent_reader.query.errors import invalid
from agent_reader.query.kept_readings import KeptReadings
from agent_reader.query.windows import LEAST_WINDOW_OCTETS, Budget, Windowed
from agent_reader.store.snapshot import Snapshot, StoredEmail
from shared.message import JSON, Message

# Below this not even the properties of one Email fit, and a whole answer would be what was left out.
LEAST_TOTAL_OCTETS: Final = 1_024

# Each may be a whole message from the mail server; more of them are asked for in a call of their own.
MAX_MESSAGES_FETCHED: Final = 10

# Gives a message with its octets, or the outcome that says why not.
FetchMessage = Callable[[StoredEmail], Message | str]


@dataclass(frozen=True, slots=True)
class AgentEmailGetArguments:
    """The arguments of Email/get with the extension: `plain` are RFC 8621's, without the extension's properties.

    `agent_properties` are those of the extension; `max_total_bytes` None for no budget; `window_start` in octets.
    """

    plain: EmailGetArguments
    agent_properties: tuple[str, ...] = ()
    max_total_bytes: int | None = None
    window_start: int = 0


@dataclass(frozen=True, slots=True)
class AgentGetResult:
    """What Email/get answers besides its Emails: `left_out` names what the budget and the windows left out."""

    not_found: tuple[str, ...]
    left_out: Mapping[str, JSON]


@dataclass(slots=True)
class _LeftOut:
    ids: list[str] = field(default_factory=list)
    texts: list[JSON] = field(default_factory=list)

    def note(self, email_id: str, text: Windowed) -> None:
        if text.is_cut:
            self.texts.append(
                {
                    "id": email_id,
                    "property": text.name,
                    "partId": text.part_id,
                    "windowStart": text.end,
                    "octets": len(text.whole) - text.end,
                }
            )


def parse_agent_email_get(untrusted: Mapping[str, JSON]) -> AgentEmailGetArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    own = {"maxTotalBytes", "windowStart"}
    rest = {name: value for name, value in untrusted.items() if name not in own}
    properties = rest.get("properties")
    agent_properties: tuple[str, ...] = ()
    if isinstance(properties, list | tuple):
        agent_properties = tuple(dict.fromkeys(name for name in properties if name in AGENT_PROPERTIES))
        rest["properties"] = [name for name in properties if name not in AGENT_PROPERTIES]
    plain = parse_email_get(rest)
    return AgentEmailGetArguments(
        plain,
        tuple(str(name) for name in agent_properties),
        _max_total_bytes(untrusted.get("maxTotalBytes")),
        _window_start(untrusted.get("windowStart"), plain),
    )


def agent_email_get(
    snapshot: Snapshot,
    asked: AgentEmailGetArguments,
    fetch: FetchMessage,
    put: Callable[[dict[str, JSON]], None],
    go_on: Callable[[], None] = lambda: None,
    readings: KeptReadings | None = None,
) -> AgentGetResult:
    """Answer Email/get with the extension; each Email goes to `put`, as `email_get_as_asked` does it.

    `fetch` is asked for attachments that the store does not keep. `readings` are those of the whole request.
    """
    ids = tuple(dict.fromkeys(asked.plain.ids or ()))
    found = snapshot.emails(ids)
    budget, left_out = Budget(asked.max_total_bytes), _LeftOut()
    fetching = _Fetching(fetch)
    readings = KeptReadings() if readings is None else readings
    has_to_read = bool(asked.agent_properties) or reads_messages(asked.plain)
    for email in found.values():
        go_on()
        if not left_out.ids:
            with snapshot.room.place(email.size, go_on) if has_to_read else nullcontext():
                answer, texts = _answer(snapshot, email, asked, fetching, readings)
                if budget.has_room_for(answer, texts):
                    put(answer)
                    for text in texts:
                        left_out.note(email.id, text)
                    continue
        # In the order that was asked for: whoever goes on asks for these.
        left_out.ids.append(email.id)
    not_found = tuple(each for each in ids if each not in found)
    return AgentGetResult(not_found, {"ids": left_out.ids, "texts": left_out.texts})


def _answer(
    snapshot: Snapshot,
    email: StoredEmail,
    asked: AgentEmailGetArguments,
    fetching: "_Fetching",
    readings: KeptReadings,
) -> tuple[dict[str, JSON], list[Windowed]]:
    # Read once here also where it is too large to be kept for the request, and not at all where nothing asks for it.
    kept = cache(lambda: readings.of(snapshot, email.key))
    answer = email_as_asked(email, replace(asked.plain, max_body_value_bytes=0), lambda: kept().message)
    texts: list[Windowed] = []
    for name in asked.agent_properties:
        match name:
            case "newText":
                answer[name], text = new_text(kept().segmented(), kept().text())
                texts.append(text)
            case "flags":
                answer[name] = flags_of(kept().flags())
            case "cleaned":
                answer[name] = cleaned(kept().text())
            case _:
                attached = Attached(kept().message, snapshot.scope.depth, lambda: fetching.message(email))
                answer[name], attachments = text_of_attachment(attached)
                texts += attachments
    if answer.get("bodyValues"):
        texts[:0] = texts_in(answer["bodyValues"], kept().message)
    for text in texts:
        was_cut_before = text.holder.get("isTruncated") is True
        text.show(asked.window_start, asked.plain.max_body_value_bytes)
        # A text that is not kept is cut, to nothing; that the window shows all of nothing does not mend it.
        if was_cut_before or (text.name == "newText" and has_unkept_body(kept().message)):
            text.holder["isTruncated"] = True
    return answer, texts


class _Fetching:
    """Messages fetched for one call: a few."""

    def __init__(self, fetch: FetchMessage) -> None:
        self._fetch, self._left = fetch, MAX_MESSAGES_FETCHED

    def message(self, email: StoredEmail) -> Message | str:
        if self._left == 0:
            return NOT_FETCHED
        self._left -= 1
        return self._fetch(email)


def _max_total_bytes(untrusted: JSON) -> int | None:
    if untrusted is None:
        return None
    octets = arguments.unsigned_value("maxTotalBytes", untrusted)
    if octets < LEAST_TOTAL_OCTETS:
        raise invalid("maxTotalBytes", f"must be {LEAST_TOTAL_OCTETS} at least, or null for no budget.")
    return octets


def _window_start(untrusted: JSON, plain: EmailGetArguments) -> int:
    start = 0 if untrusted is None else arguments.unsigned_value("windowStart", untrusted)
    if untrusted is not None and 0 < plain.max_body_value_bytes < LEAST_WINDOW_OCTETS:
        raise invalid("maxBodyValueBytes", f"must be {LEAST_WINDOW_OCTETS} at least with windowStart, or 0.")
    return start
