"""Email/get with the extension for agents: its properties, a budget over the answer, and texts read in pieces."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import msgspec

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
from agent_reader.query.email_content import ContentAsked
from agent_reader.query.email_get import Put, digest_of, is_whole, joined, row_asked, row_of
from agent_reader.query.email_get_arguments import EmailGetArguments, parse_email_get
from agent_reader.query.errors import invalid
from agent_reader.query.kept_readings import KeptReading, KeptReadings
from agent_reader.query.windows import LEAST_WINDOW_OCTETS, Budget, Windowed
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.store.written import Written
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
    left_out: Mapping[str, Any]


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
    put: Put,
    go_on: Callable[[], None] = lambda: None,
    readings: KeptReadings | None = None,
) -> AgentGetResult:
    """Answer Email/get with the extension; each Email goes to `put`, as `email_get_as_asked` does it.

    `fetch` is asked for attachments that the store does not keep. `readings` are those of the whole request.
    """
    missing = dict.fromkeys(asked.plain.ids or ())
    ids, left_out = list(missing), list[str]()
    giving = _Giving(snapshot, asked, _Fetching(fetch), put, go_on, KeptReadings() if readings is None else readings)
    with closing(snapshot.each_email(ids, with_documents=giving.has_to_read)) as emails:
        for email in emails:
            go_on()
            del missing[email.id]
            if left_out or not giving.give(email):
                # In the order that was asked for: whoever goes on asks for these.
                left_out.append(email.id)
    texts = [msgspec.Raw(each) for each in giving.cut]
    return AgentGetResult(tuple(missing), {"ids": left_out, "texts": texts})


class _Giving:
    """Gives the Emails of one answer, one after the other, until the budget has no room for one."""

    def __init__(
        self,
        snapshot: Snapshot,
        asked: AgentEmailGetArguments,
        fetching: "_Fetching",
        put: Put,
        go_on: Callable[[], None],
        readings: KeptReadings,
    ) -> None:
        self._snapshot, self._asked, self._fetching = snapshot, asked, fetching
        self._put, self._go_on, self._readings = put, go_on, readings
        self._budget = Budget(asked.max_total_bytes)
        # Whole: the windows are cut from it.
        self._content = ContentAsked(replace(asked.plain, max_body_value_bytes=0))
        self._row = row_asked(self._content.names)
        # A budget says how much of what is written is given, not what is written.
        self._question = digest_of(replace(asked, plain=replace(asked.plain, ids=None), max_total_bytes=None))
        self.has_to_read = bool(asked.agent_properties or self._content.names.of_message)
        self.cut = list[bytes]()

    def give(self, email: StoredEmail) -> bool:
        """Give an Email, or say that there is no room for it."""
        known = self._snapshot.written.find(email.id, self._question, email.source)
        if known is not None and self._give_whole(email, known):
            return True
        with self._snapshot.room.place(email.size, self._go_on) if self.has_to_read else nullcontext():
            return self._read_and_give(email)

    def _give_whole(self, email: StoredEmail, written: Written) -> bool:
        octets, shown = joined(email, self._row, written)
        if not self._budget.takes(len(octets)):
            return False
        self._put(octets, shown)
        self.cut += written.cut
        return True

    def _read_and_give(self, email: StoredEmail) -> bool:
        times_asked = self._fetching.times_asked
        content, texts = self._read(email)
        written = self._written(email, content, texts)
        # What the mail server gave, or did not, is nothing that the store keeps.
        if self._fetching.times_asked == times_asked and is_whole(email, has_to_read=self.has_to_read):
            self._snapshot.written.keep(email.id, self._question, email.source, written)
        if self._give_whole(email, written):
            return True
        if not self._budget.can_hold(len(row_of(email, self._row)), content, texts):
            return False
        return self._give_whole(email, self._written(email, content, texts))

    def _written(self, email: StoredEmail, content: dict[str, JSON], texts: Iterable[Windowed]) -> Written:
        return self._content.written(content, (text.rest(email.id) for text in texts if text.is_cut))

    def _read(self, email: StoredEmail) -> tuple[dict[str, JSON], list[Windowed]]:
        # Once also where it is too large to be kept for the request, and not at all where nothing asks for it.
        kept = cache(lambda: self._readings.of(self._snapshot, email))
        answer = self._content.taken_apart(email, lambda: kept().message)
        depth = self._snapshot.scope.depth
        return answer, extend(
            answer, self._asked, kept, lambda: Attached(kept().message, depth, lambda: self._fetching.message(email))
        )


def extend(
    answer: dict[str, JSON],
    asked: AgentEmailGetArguments,
    kept: Callable[[], KeptReading],
    attached: Callable[[], Attached],
) -> list[Windowed]:
    """Add the extension's properties to the others of an Email, and show of its texts the window that is asked for.

    Returns the texts. `answer` holds the texts of bodyValues whole.
    """
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
                answer[name], attachments = text_of_attachment(attached())
                texts += attachments
    if answer.get("bodyValues"):
        texts[:0] = texts_in(answer["bodyValues"], kept().message)
    for text in texts:
        was_cut_before = text.holder.get("isTruncated") is True
        text.show(asked.window_start, asked.plain.max_body_value_bytes)
        # A text that is not kept is cut, to nothing; that the window shows all of nothing does not mend it.
        if was_cut_before or (text.name == "newText" and has_unkept_body(kept().message)):
            text.holder["isTruncated"] = True
    return texts


class _Fetching:
    """Messages fetched for one call: a few."""

    def __init__(self, fetch: FetchMessage) -> None:
        self._fetch, self._left = fetch, MAX_MESSAGES_FETCHED
        self.times_asked = 0

    def message(self, email: StoredEmail) -> Message | str:
        self.times_asked += 1
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
