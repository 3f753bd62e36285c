"""`agent-reader parse`: one message from a file as JSON, or as the text that an agent would get.

For people who report a bug, and for tests. Nothing that a terminal obeys leaves as it stands.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from agent_reader.agent_text import Wanted, agent_text
from shared.fence import clean
from shared.identity import MAX_MESSAGE_OCTETS, email_id, message_digest
from shared.message import (
    BODY_PROPERTIES,
    CONTENT_PROPERTIES,
    JSON,
    AttachmentText,
    Message,
    Part,
    SegmentedText,
    attachment_text,
    authentication,
    body_lists,
    email_json,
    flags,
    link_findings,
    parse,
    readable_text,
    segmented_text,
)
from shared.settings import ConfigurationError
from shared.time_and_chance import RandomOctets

STANDARD_INPUT: Final = "-"

# Forwards of forwards. Each level is read anew, so depth costs; the octets stay whole all the same.
_MAX_NESTING: Final = 10


def read_octets(path: str, standard_input: BinaryIO) -> bytes:
    """Return a file's octets, or those of standard input for `-`. Raises `ConfigurationError`."""
    where = "standard input" if path == STANDARD_INPUT else clean(path).text
    try:
        if path == STANDARD_INPUT:
            octets = standard_input.read(MAX_MESSAGE_OCTETS + 1)
        else:
            with Path(path).open("rb") as file:
                octets = file.read(MAX_MESSAGE_OCTETS + 1)
    except FileNotFoundError:
        raise ConfigurationError(
            where, "there is no such file.", "Name a file with one message, or - for standard input."
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "this is no file's name"
        raise ConfigurationError(where, f"cannot be read: {reason}.", "Name a file that you may read.") from None
    if len(octets) > MAX_MESSAGE_OCTETS:
        raise ConfigurationError(
            where, f"is larger than {MAX_MESSAGE_OCTETS} octets.", "No larger message is read at all."
        )
    return octets


def message_json(octets: bytes, *, authserv_id: str | None, nested: bool) -> str:
    """Return a message as JSON of printable characters; everything that its octets tell, `nested` messages too."""
    written = json.dumps(_everything(octets, authserv_id, _MAX_NESTING if nested else 0), ensure_ascii=False, indent=2)
    return "\n".join(map(_printable, written.split("\n")))


def message_text(octets: bytes, wanted: Wanted, *, nested: bool, random_octets: RandomOctets) -> str:
    """Return the text that an agent would get, with `nested` one for each message inside, parents first."""
    texts: list[str] = []
    for place, message in _with_nested(parse(octets), _MAX_NESTING if nested else 0):
        title = [f"Message inside, part {place}"] if place else []
        texts.append("\n".join([*title, agent_text(message, wanted, random_octets)]))
    return "\n\n".join(texts)


def _with_nested(outermost: Message, levels: int) -> Iterator[tuple[str, Message]]:
    waiting = [("", outermost, levels)]
    while waiting:
        place, message, left = waiting.pop()
        yield place, message
        inside = [
            (f"{place}/{part.part_id}" if place else str(part.part_id), parse(part.content()), left - 1)
            for part in (_messages_in(message) if left else ())
        ]
        waiting.extend(reversed(inside))


def _messages_in(message: Message) -> list[Part]:
    return [part for part in message.root.walk() if part.is_message]


def _everything(octets: bytes, authserv_id: str | None, levels: int) -> dict[str, JSON]:
    message = parse(octets)
    email = email_json(
        message,
        properties=sorted(CONTENT_PROPERTIES),
        body_properties=sorted(BODY_PROPERTIES - {"subParts"}),
        fetch_all=True,
    )
    reading = readable_text(message)
    answer: dict[str, JSON] = {
        "email": {"id": email_id(message_digest(octets)), **email},
        "defects": [{"code": defect.code.value, "detail": defect.detail} for defect in message.defects],
        "flags": [{"fact": flag.fact.value, "where": flag.where} for flag in flags(message)],
        "authentication": _authentication_json(message, authserv_id),
        "text": {
            "source": reading.source.value,
            "choice": reading.choice.value,
            "reason": reading.reason,
            "value": reading.text,
            "segments": _segments_json(segmented_text(message)),
            "hidden": [{"trick": hidden.trick.value, "text": hidden.text} for hidden in reading.hidden],
        },
        "links": [
            {"concern": finding.concern.value, "host": finding.host, "shown": finding.shown}
            for finding in link_findings(message, reading)
        ],
        "attachmentTexts": [_attachment_json(attachment_text(part)) for part in body_lists(message).attachments],
    }
    if levels:
        answer["nested"] = {
            str(part.part_id): _everything(part.content(), authserv_id, levels - 1) for part in _messages_in(message)
        }
    return answer


def _authentication_json(message: Message, authserv_id: str | None) -> JSON:
    found = authentication(message, authserv_id)
    return {
        "verdict": found.verdict.value,
        "belief": found.belief.value,
        "source": found.source,
        "unbelieved": found.unbelieved,
        "results": [{"method": each.method, "result": each.result, "reason": each.reason} for each in found.results],
    }


def _segments_json(segmented: SegmentedText) -> JSON:
    return [{"kind": each.kind.value, "start": each.start, "end": each.end} for each in segmented.segments]


def _attachment_json(found: AttachmentText) -> JSON:
    return {
        "name": found.name,
        "type": found.type,
        "size": found.size,
        "outcome": found.outcome.value,
        "form": found.form.value if found.form else None,
        "text": found.text,
        "isTruncated": found.is_truncated,
    }


def _printable(line: str) -> str:
    if line.isprintable() and not clean(line).removed:
        return line
    return "".join(map(_escaped, line))


def _escaped(character: str) -> str:
    """The character as JSON spells it where an eye or a terminal could be deceived by it."""
    if character.isprintable() and not clean(character).removed:
        return character
    code = ord(character)
    if code <= 0xFFFF:  # noqa: PLR2004 - one UTF-16 unit
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def write(text: str) -> None:
    """Write a text and a line end to standard output as UTF-8, whatever the terminal's locale says."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()
