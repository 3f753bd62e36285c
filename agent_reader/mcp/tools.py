"""The closed table of tools: name, words for the model, arguments, and the function that answers.

Every one reads. What asks for a change is no tool of this house: `agent_reader.relay` has it, in another process, with
another token, and it speaks to the executor. Texts are short, since a client sends them with every conversation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agent_reader.mcp.call import Call
from agent_reader.mcp.finding import DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT, list_mailboxes, search_mail
from agent_reader.mcp.news import DEFAULT_NEWS_LIMIT, MAX_NEWS_LIMIT, whats_new
from agent_reader.mcp.reading import MAX_IDS, parts_for, read_attachment, read_mail, read_thread
from agent_reader.mcp.views import Part
from agent_reader.scope import Depth

Schema = dict[str, Any]


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def _number(description: str, least: int, most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": least, "description": description} | ({"maximum": most} if most else {})


@dataclass(frozen=True, slots=True)
class Tool:
    """A row of the table. `properties` are JSON Schema; `least_depth`: how much of a message its token must see."""

    name: str
    title: str
    description: str
    properties: dict[str, Schema]
    required: tuple[str, ...]
    function: Callable[[Call], None]
    least_depth: Depth = Depth.HEADERS

    def is_for(self, depth: Depth) -> bool:
        """Whether a token that sees so much of a message may use it."""
        depths = tuple(Depth)
        return depths.index(depth) >= depths.index(self.least_depth)

    def schema(self, accounts: tuple[str, ...], depth: Depth = Depth.FULL) -> Schema:
        """Return the input schema; where the token opens several accounts, one has to be named."""
        properties, required = dict(self.properties), self.required
        if depth is Depth.HEADERS and "part" in properties:
            properties["part"] = {"type": "string", "enum": list(parts_for(depth)), "description": "Every address."}
        if len(accounts) > 1:
            properties["account"] = {"type": "string", "enum": list(accounts), "description": "Which account."}
            required = (*required, "account")
        return {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }


TOOLS: Final = (
    Tool(
        "whats_new",
        "What is new",
        "New mail since this agent's last call (the first: the last 24 hours), a line each, oldest first, unread "
        "unless it says read. The place is remembered; peek=true leaves it where it is.",
        {
            "peek": _flag("true: tell the same again next time."),
            "limit": _number(f"Lines, {DEFAULT_NEWS_LIMIT} if left out.", 1, MAX_NEWS_LIMIT),
            "previews": _flag("true: with the beginning of each text."),
            "brief": _flag("true: without addresses."),
            "cursor": _text("To go on peeking, from the answer before."),
        },
        (),
        whats_new,
    ),
    Tool(
        "search_mail",
        "Search mail",
        "Find messages, newest first, one line each with the text around the hit. Conditions add up; words match "
        'whole words, "quoted words" a phrase.',
        {
            "text": _text("Words anywhere: names, addresses, subject, body."),
            "from": _text("Sender's name, address or domain."),
            "to": _text("Recipient's name, address or domain."),
            "subject": _text("Words of the subject."),
            "body": _text("Words of the body."),
            "mailbox": _text("Id, role (inbox, sent, archive, ...) or name."),
            "after": _text("Received at or after: 2026-01-31 or 2026-01-31T14:00:00Z."),
            "before": _text("Received before."),
            "has_attachment": _flag("With or without attachments."),
            "unread": _flag("Unread or read."),
            "flagged": _flag("Flagged or not."),
            "order": {"type": "string", "enum": ["newest", "oldest"], "description": "Which come first."},
            "limit": _number(f"Lines, {DEFAULT_SEARCH_LIMIT} if left out.", 1, MAX_SEARCH_LIMIT),
            "brief": _flag("true: name and hit, or else subject, alone; half as long."),
            "cursor": _text("To go on, from the answer before."),
        },
        (),
        search_mail,
    ),
    Tool(
        "read_mail",
        "Read messages",
        "Read one message or several. Shows what is new in each; quotes, signatures, hidden text and ends of links are "
        "left out and counted, and `part` gets them. Long texts go on with offset.",
        {
            "ids": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": MAX_IDS,
                "description": "Message ids (M...).",
            },
            "part": {
                "type": "string",
                "enum": [part.value for part in Part],
                "description": "new (default); whole: with quotes and signature; header: every address; links: in "
                "full; hidden: text that a person would not see.",
            },
            "offset": _number("Go on from this character; one id only.", 0),
        },
        ("ids",),
        read_mail,
    ),
    Tool(
        "read_thread",
        "Read a conversation",
        "Read a whole conversation, oldest first, each text once without quotes.",
        {
            "id": _text("A thread's id (T...), or that of any message in it (M...)."),
            "cursor": _text("To go on, from the answer before."),
        },
        ("id",),
        read_thread,
        least_depth=Depth.TEXT,
    ),
    Tool(
        "read_attachment",
        "Read an attachment",
        "Read an attachment that is text: plain text, HTML, tables, calendar entries, address cards.",
        {
            "id": _text("The message's id (M...)."),
            "number": _number("Which attachment, as read_mail numbers them; the first if left out.", 1),
            "offset": _number("Go on from this character.", 0),
        },
        ("id",),
        read_attachment,
        least_depth=Depth.FULL,
    ),
    Tool(
        "list_mailboxes",
        "List mailboxes",
        "Every mailbox: id, role, how many messages and unread ones, name.",
        {"cursor": _number("To go on, from the answer before.", 0)},
        (),
        list_mailboxes,
    ),
)

# Nothing is changed and nothing is reached but the mailbox; the same call may find other mail later.
ANNOTATIONS: Final = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
# Without `peek` it moves the agent's own place, and nothing of the mailbox.
_MOVES_ITS_PLACE: Final = frozenset({"whats_new"})


def annotations(tool: Tool) -> dict[str, Any]:
    """Return what a client may know of a tool before it calls."""
    return {"title": tool.title} | ANNOTATIONS | ({"idempotentHint": False} if tool.name in _MOVES_ITS_PLACE else {})
