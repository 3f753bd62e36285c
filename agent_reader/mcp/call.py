"""One tool call: what it may look at, and what it writes and shows."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from agent_reader.access import Agent, Shown
from agent_reader.mcp.cursors import Cursor, Cursors
from agent_reader.mcp.views import Part, View, Views
from agent_reader.query import BlobReader
from agent_reader.query.patience import Patience
from agent_reader.scope import Depth
from agent_reader.store.snapshot import Snapshot, StoredEmail
from agent_reader.tool_answers.arguments import Arguments
from agent_reader.tool_answers.sheet import Sheet
from shared.message import Message


@dataclass(slots=True)
class Call:
    """A tool call while it is answered: one account in one state, an answer's sheet, and what goes on record."""

    tool: str
    agent: Agent
    snapshot: Snapshot = field(repr=False)
    arguments: Arguments = field(repr=False)
    sheet: Sheet = field(repr=False)
    views: Views = field(repr=False)
    cursors: Cursors = field(repr=False)
    blobs: BlobReader | None = field(repr=False)
    now: datetime
    patience: Patience = field(repr=False)
    _place: Cursor | None = None
    _shown: dict[str, list[str]] = field(default_factory=dict, repr=False)
    _opened: list[str] = field(default_factory=list, repr=False)

    def shows(self, email_ids: Iterable[str], *parts: str, opened: bool = False) -> None:
        """Note that the answer holds parts of Emails, in the read log's words; `opened`: text of their bodies."""
        if self.agent.scope.depth is Depth.HEADERS:
            # A line has room for a preview, and this token gets none.
            parts = tuple(part for part in parts if part == "header")
        for email_id in email_ids:
            self._shown.setdefault(email_id, []).extend(parts)
            if opened:
                self._opened.append(email_id)

    def email(self, email_id: str) -> StoredEmail | None:
        """Return an Email that the token shows."""
        return self.snapshot.emails([email_id]).get(email_id)

    def view(self, email: StoredEmail, part: Part) -> View:
        """Return a text of an Email that the token shows."""
        return self.views.view(self.agent.token_id, self.snapshot, email, part, self.patience.go_on)

    @contextmanager
    def message(self, email: StoredEmail) -> Iterator[Message]:
        """Give what is kept of an Email's message, and hold a place in the reading room within the block."""
        self.patience.go_on()
        with self.snapshot.room.place(email.size, self.patience.go_on):
            yield self.snapshot.message(email.key)

    def record(self, octets: int) -> Shown:
        """Return the line of the read log; `octets` of the whole answer."""
        return Shown(
            method=f"mcp/{self.tool}",
            account=self.snapshot.account_id,
            email_ids=tuple(self._shown),
            opened_ids=tuple(dict.fromkeys(self._opened)),
            octets=octets,
            parts=tuple((email_id, tuple(parts)) for email_id, parts in self._shown.items()),
        )

    def moves_to(self, place: Cursor) -> None:
        """Note where the agent stands in the news after this answer."""
        self._place = place

    def keep_place(self) -> None:
        """Keep that place on disk."""
        if self._place is not None:
            self.cursors.write(self.agent.name, self.snapshot.account_id, self._place)
