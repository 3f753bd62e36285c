"""The Email properties of the extension for agents: newText, flags, cleaned and textOfAttachment.

Every text here is the sender's, cleaned of what the eye cannot see; `cleaned` says what was taken out.
docs/jmap-extension.md describes each.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agent_reader.query.windows import Windowed
from agent_reader.scope import Depth
from agent_reader.store.document import StoredPart
from shared.fence import clean, clean_line, invisible_kinds, spelled_by_tags
from shared.message import (
    JSON,
    AttachmentOutcome,
    AttachmentText,
    Flag,
    HiddenText,
    Message,
    Part,
    ReadableText,
    SegmentedText,
    SegmentKind,
    attachment_text,
    body_lists,
)

AGENT_PROPERTIES: Final = ("newText", "flags", "cleaned", "textOfAttachment")

# What nobody sees and somebody wrote all the same says what it is for within this; more is counted.
MAX_HIDDEN_TEXTS: Final = 50
MAX_HIDDEN_CHARACTERS: Final = 2_000

# Outcomes of textOfAttachment besides `AttachmentOutcome`'s: why an attachment that may be text was not looked at.
NOT_GRANTED: Final = "notGranted"
NOT_FETCHED: Final = "notFetched"
UNAVAILABLE: Final = "unavailable"

# Gives the message again with its octets, or the outcome that says why not.
FetchMessage = Callable[[], Message | str]


@dataclass(frozen=True, slots=True)
class Attached:
    """What textOfAttachment is made from: the message as it is kept, and how to have it whole."""

    message: Message
    depth: Depth
    fetch: FetchMessage


def new_text(segmented: SegmentedText, reading: ReadableText) -> tuple[dict[str, JSON], Windowed]:
    """Return what is new in the body's text, without earlier messages and signature, and its text to be windowed."""
    answer: dict[str, JSON] = {
        "source": reading.source.value,
        "choice": reading.choice.value,
        "leftOut": {
            "quoted": segmented.left_out(SegmentKind.QUOTED),
            "signature": segmented.left_out(SegmentKind.SIGNATURE),
        },
    }
    return answer, Windowed("newText", None, _octets(segmented.new_text()), answer)


def flags_of(found: Iterable[Flag]) -> JSON:
    """Return the facts about a message as JSON."""
    return [{"fact": flag.fact.value, "where": flag.where} for flag in found]


def cleaned(reading: ReadableText) -> JSON:
    """Return what was taken out of the body's text: characters by kind, the words they spell, and hidden texts."""
    return {
        "characters": {kind.value: count for kind, count in invisible_kinds(reading.text).items()},
        "spelledByTags": spelled_by_tags(reading.text)[:MAX_HIDDEN_CHARACTERS],
        "hidden": _hidden(reading.hidden),
        "hiddenLeftOut": max(0, len(reading.hidden) - MAX_HIDDEN_TEXTS),
    }


def text_of_attachment(attached: Attached) -> tuple[dict[str, JSON], list[Windowed]]:
    """Return each attachment as text or why it is none, by part id, and its texts to be windowed."""
    whole: Message | str | None = None
    answer: dict[str, JSON] = {}
    texts: list[Windowed] = []
    for part in body_lists(attached.message).attachments:
        found = attachment_text(part)
        if _must_be_fetched(part, found):
            if whole is None:
                whole = attached.fetch() if attached.depth is Depth.FULL else NOT_GRANTED
            fetched = None if isinstance(whole, str) else whole.part(part.part_id or "")
            if fetched is None:
                answer[str(part.part_id)] = _facts(found, whole if isinstance(whole, str) else UNAVAILABLE)
                continue
            found = attachment_text(fetched)
        # Email/parse reads an attached message for whoever sees attachments.
        is_hidden = found.outcome is AttachmentOutcome.MESSAGE and attached.depth is not Depth.FULL
        holder = _facts(found, NOT_GRANTED if is_hidden else found.outcome.value)
        answer[str(part.part_id)] = holder
        if found.outcome is AttachmentOutcome.TEXT:
            holder |= {
                "form": None if found.form is None else found.form.value,
                "isEncodingProblem": found.is_encoding_problem,
                "goesOn": found.is_truncated,
                "hidden": _hidden(found.hidden),
            }
            texts.append(Windowed("textOfAttachment", part.part_id, _octets(found.text), holder))
    return answer, texts


def has_unkept_body(message: Message) -> bool:
    """Whether text of the body is not here: the message was too large to be read, or the scope does not go so deep."""
    lists = body_lists(message)
    texts = (part for part in (*lists.text_body, *lists.html_body) if part.type.startswith("text/"))
    return any(isinstance(part, StoredPart) and not part.is_kept for part in texts)


def _must_be_fetched(part: Part, found: AttachmentText) -> bool:
    may_be_text = found.outcome in {AttachmentOutcome.TEXT, AttachmentOutcome.NOT_DECODABLE}
    return may_be_text and isinstance(part, StoredPart) and not part.is_kept and part.size > 0


def _facts(found: AttachmentText, outcome: str) -> dict[str, JSON]:
    name = None if found.name is None else clean_line(found.name).text
    return {"name": name, "type": found.type, "size": found.size, "outcome": outcome}


def _hidden(hidden: tuple[HiddenText, ...]) -> list[JSON]:
    return [{"trick": each.trick.value, **_cut(each.text)} for each in hidden[:MAX_HIDDEN_TEXTS]]


def _cut(text: str) -> dict[str, JSON]:
    shown = clean(text).text
    return {"text": shown[:MAX_HIDDEN_CHARACTERS], "isTruncated": len(shown) > MAX_HIDDEN_CHARACTERS}


def _octets(text: str) -> bytes:
    return clean(text).text.encode("utf-8", "replace")


def texts_in(body_values: JSON, message: Message) -> Iterator[Windowed]:
    """Yield the texts of bodyValues, each to be windowed."""
    if not isinstance(body_values, dict):
        return
    for part_id, value in body_values.items():
        if isinstance(value, dict) and isinstance(value.get("value"), str):
            part = message.part(part_id)
            is_html = part is not None and part.type == "text/html"
            yield Windowed("bodyValues", part_id, value["value"].encode("utf-8", "replace"), value, is_html)
