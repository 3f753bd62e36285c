"""Email/parse with the extension for agents: what Email/get has of it, for a message that is attached to another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from agent_reader.query.agent_email_get import AgentEmailGetArguments, extend, parse_agent_email_get
from agent_reader.query.agent_properties import UNAVAILABLE, Attached
from agent_reader.query.blobs import FoundBlob
from agent_reader.query.email_parse import BLOB_IDS, ReadBlob, parse_blob_ids, parsed_email, with_message
from agent_reader.query.kept_readings import KeptReading
from agent_reader.query.windows import Budget, Windowed
from agent_reader.scope import Depth
from shared.message import JSON, Message


@dataclass(frozen=True, slots=True)
class AgentEmailParseArguments:
    """The arguments of Email/parse with the extension; `shape` is what Email/get has too."""

    blob_ids: tuple[str, ...]
    shape: AgentEmailGetArguments


@dataclass(slots=True)
class AgentParsed:
    """What Email/parse answers besides its Emails: `left_out` and `texts` name what budget and windows left out."""

    not_parsable: list[str]
    not_found: list[str]
    left_out: list[str]
    texts: list[JSON]


def parse_agent_email_parse(untrusted: Mapping[str, JSON]) -> AgentEmailParseArguments:
    """Return the arguments, or raise `QueryRefused` naming the one that is wrong."""
    shape = {name: value for name, value in untrusted.items() if name != BLOB_IDS}
    return AgentEmailParseArguments(parse_blob_ids(untrusted), parse_agent_email_get(shape))


def agent_email_parse(
    found: Mapping[str, FoundBlob],
    asked: AgentEmailParseArguments,
    read_blob: ReadBlob,
    put: Callable[[str, dict[str, JSON]], None],
    go_on: Callable[[], None] = lambda: None,
) -> AgentParsed:
    """Answer Email/parse with the extension; each Email goes to `put` with its blob's id, as `email_parse` does it."""
    answer = AgentParsed([], [], [], [])
    budget = Budget(asked.shape.max_total_bytes)
    for blob_id in asked.blob_ids:
        go_on()
        if blob_id not in found:
            answer.not_found.append(blob_id)
        elif answer.left_out:
            # In the order that was asked for: whoever goes on asks for these.
            answer.left_out.append(blob_id)
        elif not with_message(found[blob_id], read_blob, partial(_give, blob_id, asked.shape, budget, answer, put)):
            answer.not_parsable.append(blob_id)
    return answer


def _give(
    blob_id: str,
    shape: AgentEmailGetArguments,
    budget: Budget,
    answer: AgentParsed,
    put: Callable[[str, dict[str, JSON]], None],
    message: Message,
) -> None:
    email, texts = _email(message, shape)
    if not budget.can_hold(len(b"{}"), email, texts) or not budget.takes(len(msgspec.json.encode(email))):
        answer.left_out.append(blob_id)
        return
    put(blob_id, email)
    answer.texts += [text.rest(blob_id) for text in texts if text.is_cut]


def _email(message: Message, shape: AgentEmailGetArguments) -> tuple[dict[str, JSON], list[Windowed]]:
    reading = KeptReading(message)
    email = parsed_email(message, replace(shape.plain, max_body_value_bytes=0))
    # All octets are here, so nothing has to be fetched; and without the depth for attachments no blob is found.
    attached = Attached(message, Depth.FULL, lambda: UNAVAILABLE)
    return email, extend(email, shape, lambda: reading, lambda: attached)
