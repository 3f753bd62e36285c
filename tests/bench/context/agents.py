"""One scripted agent, and how it uses each server: look for the phrase, then into the likeliest line, till it is there.

It stops as soon as every answer is in view. All servers get the same phrases. It works in two manners: by the defaults
of the server, or careful, with lists of five lines and the cheapest way of reading that the server offers.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.bench.context.tasks import Kind, Task

# A careful agent asks for short lists; one that goes by the defaults leaves the length to the server.
CAREFUL_LINES: Final = 5
_MAX_PAGES: Final = 4
# A server that does not answer within it has not answered.
_CALL_SECONDS: Final = 20.0
_MAX_READ: Final = 8

_MARK: Final = re.compile(r"^(M\S+ .*?)?\b[0-9a-f]{4}\| ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Hit:
    """A message of a list: its id there, and what the list says of it."""

    id: str
    line: str


@dataclass(slots=True)
class Bill:
    """What was returned so far: characters, calls, and the text that is in view."""

    client: Client
    characters: int = 0
    calls: int = 0
    _views: list[str] = field(default_factory=list)

    async def call(self, name: str, **arguments: Any) -> str:
        given = {key: value for key, value in arguments.items() if value is not None}
        self.calls += 1
        async with asyncio.timeout(_CALL_SECONDS):
            result = await self.client.call_tool(name, given)
        text = "\n".join(str(getattr(content, "text", "")) for content in result.content)
        self.characters += len(text)
        self._views.append(_plain(text))
        return text

    def shows(self, task: Task) -> bool:
        """Whether every answer is in view."""
        seen = " ".join(self._views)
        return all(" ".join(answer.split()) in seen for answer in task.answers)


def _plain(text: str) -> str:
    """A result as one reads it: strings of JSON unescaped, marks of quoting and line ends gone."""
    try:
        text = "\n".join(_strings(json.loads(text)))
    except ValueError:
        text = _MARK.sub(lambda found: found[1] or "", text)
    return " ".join(re.sub(r"^[> ]+", "", text, flags=re.MULTILINE).replace(" | ", " ").split())


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for inner in value.values() for each in _strings(inner)]
    if isinstance(value, list):
        return [each for inner in value for each in _strings(inner)]
    return [str(value)]


class Server(ABC):
    """What a scripted agent can do at one server. `default_lines`: how long a page of its lists is unasked."""

    name: ClassVar[str]
    default_lines: ClassVar[int]

    def __init__(self, *, careful: bool) -> None:
        self.careful = careful
        self.asked_lines = CAREFUL_LINES if careful else None

    @property
    def lines(self) -> int:
        """How many lines a page of its lists has."""
        return self.asked_lines or self.default_lines

    @abstractmethod
    async def search(self, bill: Bill, task: Task, page: int) -> Sequence[Hit]:
        """One page of what holds the phrase."""

    @abstractmethod
    async def read(self, bill: Bill, task: Task, hit: Hit) -> None:
        """A message, in the cheapest way first, until the answer is in view or nothing more is there."""

    async def conversation(self, bill: Bill, task: Task, hit: Hit) -> None:
        """The conversation that a message is in: where there are none, the newest message quotes those before it."""
        await self.read(bill, task, hit)

    @abstractmethod
    async def news(self, bill: Bill, since: datetime) -> None:
        """What came since a time."""

    @abstractmethod
    async def attachment(self, bill: Bill, task: Task, hit: Hit) -> None:
        """An attachment as text."""


async def solve(server: Server, client: Client, task: Task) -> tuple[Bill, bool]:
    """Work on a task; return what it cost, and whether the answer came into view."""
    bill = Bill(client)
    try:
        return bill, await _solved(server, bill, task)
    except (TimeoutError, MCPError):
        # It did not answer, or went away.
        return bill, False


async def _solved(server: Server, bill: Bill, task: Task) -> bool:
    if task.kind is Kind.NEWS:
        assert task.since is not None
        await server.news(bill, datetime.now(UTC).replace(microsecond=0) - task.since)
        return bill.shows(task)
    read = 0
    for page in range(_MAX_PAGES):
        hits = await server.search(bill, task, page)
        likely = [hit for hit in hits if task.hint.lower() in hit.line.lower()]
        for hit in [*likely, *(hit for hit in hits if hit not in likely)]:
            if bill.shows(task):
                return True
            if read == _MAX_READ:
                return False
            read += 1
            await _looked_into(server, bill, task, hit)
        if bill.shows(task) or len(hits) < server.lines:
            break
    return bill.shows(task)


async def _looked_into(server: Server, bill: Bill, task: Task, hit: Hit) -> None:
    match task.kind:
        case Kind.CONVERSATION:
            await server.conversation(bill, task, hit)
        case Kind.ATTACHMENT:
            await server.attachment(bill, task, hit)
        case _:
            await server.read(bill, task, hit)


class Ours(Server):
    """The tools of this project."""

    name: ClassVar[str] = "Mailwarrant"
    default_lines: ClassVar[int] = 20
    _cursor: str | None = None

    async def search(self, bill: Bill, task: Task, page: int) -> Sequence[Hit]:
        text = await bill.call(
            "search_mail",
            text=f'"{task.phrase}"',
            mailbox=task.mailbox,
            limit=self.asked_lines,
            cursor=self._cursor if page else None,
            brief=self.careful or None,
            **({"from": task.sender} if task.sender else {}),
        )
        found = re.search(r'cursor="([^"]+)"', text)
        self._cursor = found[1] if found else None
        return [Hit(line.split()[0], line) for line in text.split("\n") if re.match(r"M[0-9a-v]{10,32} ", line)]

    async def read(self, bill: Bill, task: Task, hit: Hit) -> None:
        await bill.call("read_mail", ids=[hit.id])
        if not bill.shows(task):
            await bill.call("read_mail", ids=[hit.id], part="whole")

    async def conversation(self, bill: Bill, task: Task, hit: Hit) -> None:  # noqa: ARG002 - the interface
        await bill.call("read_thread", id=hit.id)

    async def news(self, bill: Bill, since: datetime) -> None:  # noqa: ARG002 - its first look is a day
        await bill.call("whats_new", peek=True, limit=self.asked_lines, brief=self.careful or None)

    async def attachment(self, bill: Bill, task: Task, hit: Hit) -> None:  # noqa: ARG002 - the interface
        await bill.call("read_attachment", id=hit.id)


class McpEmailServer(Server):
    """PyPI `mcp-email-server`."""

    name: ClassVar[str] = "mcp-email-server"
    default_lines: ClassVar[int] = 10

    async def search(self, bill: Bill, task: Task, page: int) -> Sequence[Hit]:
        text = await bill.call(
            "list_emails_metadata",
            account_name="shop",
            page=page + 1,
            page_size=self.asked_lines,
            text=task.phrase,
            from_address=task.sender,
            mailbox=task.mailbox,
        )
        return _listed(text)

    async def read(self, bill: Bill, task: Task, hit: Hit) -> None:
        await bill.call("get_emails_content", account_name="shop", email_ids=[hit.id], mailbox=task.mailbox)

    async def news(self, bill: Bill, since: datetime) -> None:
        await bill.call(
            "list_emails_metadata", account_name="shop", page_size=self.asked_lines, since=since.isoformat()
        )

    async def attachment(self, bill: Bill, task: Task, hit: Hit) -> None:
        await bill.call("get_attachment_content", account_name="shop", email_id=hit.id, attachment_name=task.attachment)


def _listed(text: str) -> list[Hit]:
    try:
        emails = json.loads(text)["emails"]
    except (ValueError, KeyError):
        return []
    return [Hit(str(each["email_id"]), f"{each['subject']} {each['sender']}") for each in emails]


class EmailMcp(Server):
    """npm `@codefuturist/email-mcp`."""

    name: ClassVar[str] = "@codefuturist/email-mcp"
    default_lines: ClassVar[int] = 20

    async def search(self, bill: Bill, task: Task, page: int) -> Sequence[Hit]:
        text = await bill.call(
            "search_emails",
            account="default",
            query=task.phrase,
            mailbox=task.mailbox,
            page=page + 1,
            pageSize=self.asked_lines,
        )
        found = re.split(r"^(?=\[\d+\])", text, flags=re.MULTILINE)
        return [Hit(match[1], piece) for piece in found if (match := re.match(r"\[(\d+)\]", piece))]

    async def read(self, bill: Bill, task: Task, hit: Hit) -> None:
        for form in ("stripped", "text") if self.careful else (None,):
            if not bill.shows(task):
                await self._read(bill, task, hit, form)

    async def _read(self, bill: Bill, task: Task, hit: Hit, form: str | None) -> str:
        return await bill.call("get_email", account="default", emailId=hit.id, mailbox=task.mailbox, format=form)

    async def conversation(self, bill: Bill, task: Task, hit: Hit) -> None:
        form = "stripped" if self.careful else None
        text = await self._read(bill, task, hit, form)
        found = re.search(r"<[^<>\s]+@talk\.example>", text)
        if found and not bill.shows(task):
            await bill.call("get_thread", account="default", message_id=found[0], mailbox=task.mailbox, format=form)

    async def news(self, bill: Bill, since: datetime) -> None:
        await bill.call("list_emails", account="default", since=since.isoformat(), pageSize=self.asked_lines)

    async def attachment(self, bill: Bill, task: Task, hit: Hit) -> None:
        await bill.call("download_attachment", account="default", id=hit.id, filename=task.attachment)
