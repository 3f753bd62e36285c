"""Downloads: the exact octets of a message or a part (RFC 8620 §6.2), on record before the first one leaves."""

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_reader.access import Access, Agent, Shown
from agent_reader.door.gate import refusal
from agent_reader.door.keeper import Places
from agent_reader.jmap import problems
from agent_reader.jmap.dispatch import Snapshots
from agent_reader.jmap.disposition import content_disposition, content_type
from agent_reader.jmap.ranges import NotSatisfiable, Span, asked_span, has_it_already, is_wanted, range_applies
from agent_reader.jmap.sending import send_pieces
from agent_reader.jmap.sheet import PIECE_OCTETS
from agent_reader.query import BlobReader, BlobUnavailable, FoundBlob, OpenBlob, find_blob

# The name in the read log; beside it stand names of methods.
DOWNLOAD: Final = "download"

# Several times what one agent may have at once, so that one that waits for a slow mail server holds up no other. Few of
# them hold a message in memory: an account is fetched from by two connections.
_MOST_THREADS: Final = 16

# RFC 8620 §6.2: what an id names never changes.
_CACHE_CONTROL: Final = "private, immutable, max-age=31536000"
# The octets are a stranger's: should a browser show them all the same, they run nothing, fetch nothing, ask nobody.
_POLICY: Final = "sandbox; default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A download as it was asked for, its type and name judged."""

    account_id: str
    blob_id: str
    content_type: str
    content_disposition: str
    if_match: str | None
    has_already: str | None
    range: str | None
    if_range: str | None
    has_body: bool

    @property
    def etag(self) -> str:
        return f'"{self.blob_id}"'


@dataclass(frozen=True, slots=True)
class _Given:
    """What goes out: the blob, or None where the client has it already, and the stretch of it."""

    blob: OpenBlob | None
    span: Span | None


class Downloads:
    """Answers the download route; belongs to the event loop, with threads of its own for what blocks."""

    def __init__(
        self, snapshots: Snapshots, account_ids: Collection[str], access: Access, blobs: BlobReader, places: Places
    ) -> None:
        self._snapshots, self._account_ids = snapshots, frozenset(account_ids)
        self._access, self._blobs, self._places = access, blobs, places
        self._threads = anyio.CapacityLimiter(_MOST_THREADS)

    async def answer(self, request: Request, agent: Agent) -> Response:
        """Answer GET and HEAD. Raises a `Problem`, `AccessUnavailable`."""
        asked = _asked(request)
        with contextlib.ExitStack() as holding:
            holding.enter_context(self._places.place(agent))
            try:
                given = await anyio.to_thread.run_sync(self._give, asked, agent, limiter=self._threads)
            except NotSatisfiable as unsatisfiable:
                return _not_satisfiable(unsatisfiable.size)
            if given.blob is None:
                return Response(status_code=304, headers=_lasting(asked))
            holding.enter_context(given.blob)
            still_opens = partial(self._access.still_opens, agent.token_id)
            return _BlobResponse(asked, given.blob, given.span, holding.pop_all(), still_opens)

    def _give(self, asked: _Asked, agent: Agent) -> _Given:
        found = self._find(asked, agent)
        # In this order (RFC 9110 §13.2.2).
        if not is_wanted(asked.if_match, asked.etag):
            raise problems.precondition_failed()
        if has_it_already(asked.has_already, asked.etag):
            return _Given(None, None)
        try:
            blob = self._blobs.open(asked.account_id, found)
        except BlobUnavailable as unavailable:
            raise problems.blob_unavailable(unavailable) from None
        try:
            span = asked_span(asked.range, blob.size) if range_applies(asked.if_range, asked.etag) else None
            # On record before anything leaves; where that fails, nothing leaves.
            opened = (found.email_id,) if found.is_body and asked.has_body else ()
            octets = (blob.size if span is None else span.octets) if asked.has_body else 0
            part = f"part {asked.blob_id}" if found.is_part else "whole message"
            parts = ((found.email_id, (part,)),) if asked.has_body else ()
            shown = Shown(DOWNLOAD, asked.account_id, (found.email_id,), opened, octets, parts)
            self._access.record(agent, [shown], octets)
        except BaseException:
            blob.close()
            raise
        return _Given(blob, span)

    def _find(self, asked: _Asked, agent: Agent) -> FoundBlob:
        """The blob; every reason why there is none gives the same answer (RFC 8620 §6.2)."""
        if asked.account_id in self._account_ids and agent.scope.allows_account(asked.account_id):
            with self._snapshots.snapshot(asked.account_id, agent.scope) as snapshot:
                found = find_blob(snapshot, asked.blob_id)
            if found is not None:
                return found
        raise problems.no_such_blob()


class _BlobResponse(Response):
    """Streams a blob from its file; whatever happens, what it holds is let go at the end."""

    def __init__(
        self,
        asked: _Asked,
        blob: OpenBlob,
        span: Span | None,
        holding: contextlib.ExitStack,
        still_opens: Callable[[], bool],
    ) -> None:
        self._blob, self._holding, self._has_body, self._still_opens = blob, holding, asked.has_body, still_opens
        self._span = span if span is not None else Span(0, blob.size)
        headers = _lasting(asked) | {
            "Content-Type": asked.content_type,
            "Content-Disposition": asked.content_disposition,
            "Content-Length": str(self._span.octets),
            "Accept-Ranges": "bytes",
            "Content-Security-Policy": _POLICY,
            "Cross-Origin-Resource-Policy": "same-origin",
        }
        if span is not None:
            headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{blob.size}"
        super().__init__(status_code=200 if span is None else 206, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send the blob piece by piece, as fast as it is taken, until the client is gone or the token ends."""
        with self._holding:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self._fields()})
            await send_pieces(self._pieces(), receive, send, self._still_opens)

    def _pieces(self) -> Iterator[bytes]:
        position = self._span.start
        while self._has_body and position < self._span.end:
            # From the page cache: it was written moments ago.
            piece = self._blob.read(position, min(PIECE_OCTETS, self._span.end - position))
            position += len(piece)
            yield piece

    def _fields(self) -> list[tuple[bytes, bytes]]:
        return [(name, value) for name, value in self.raw_headers]


def _not_satisfiable(size: int) -> Response:
    response = refusal(problems.range_not_satisfiable(size))
    # RFC 9110 §15.5.17: so that the next range fits.
    response.headers["Content-Range"] = f"bytes */{size}"
    return response


def _lasting(asked: _Asked) -> dict[str, str]:
    return {"Cache-Control": _CACHE_CONTROL, "ETag": asked.etag, "Vary": "Authorization"}


def _asked(request: Request) -> _Asked:
    return _Asked(
        account_id=request.path_params["account_id"],
        blob_id=request.path_params["blob_id"],
        content_type=content_type(request.url.query),
        content_disposition=content_disposition(request.path_params["name"]),
        if_match=_list_field(request, "if-match"),
        has_already=_list_field(request, "if-none-match"),
        range=_list_field(request, "range") if request.method == "GET" else None,
        if_range=request.headers.get("if-range"),
        has_body=request.method == "GET",
    )


def _list_field(request: Request, name: str) -> str | None:
    """Lines of one name are one list (RFC 9110 §5.3)."""
    lines = request.headers.getlist(name)
    return ", ".join(lines) if lines else None
