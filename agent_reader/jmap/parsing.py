"""Email/parse at this door: the blobs that a token may read, opened one after the other, and the Emails in them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from agent_reader.jmap.agent_extension import check_not_used
from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import AGENT
from agent_reader.jmap.emails_written import EmailsWritten
from agent_reader.jmap.errors import ErrorType, MethodError
from agent_reader.jmap.reads import Arguments, Found, check_number
from agent_reader.jmap.shown_parts import FoundEmails
from agent_reader.query import BlobUnavailable, FoundBlob, email_parse, find_blob, parse_email_parse
from agent_reader.query.agent_email_parse import (
    AgentEmailParseArguments,
    AgentParsed,
    agent_email_parse,
    parse_agent_email_parse,
)
from agent_reader.query.email_parse import Parsed
from shared.message import JSON


def answer_email_parse(asking: Asking, arguments: Arguments) -> Found:
    """Answer Email/parse (RFC 8621 §4.9), with the extension for agents where the request names it."""
    has_extension = AGENT in asking.using
    if not has_extension:
        check_not_used(arguments)
    asked = parse_agent_email_parse(arguments) if has_extension else parse_email_parse(arguments)
    check_number("blobIds", asked.blob_ids, asking.limits.max_objects_in_get)
    go_on = asking.patience.go_on
    located = ((blob_id, find_blob(asking.snapshot, blob_id, go_on)) for blob_id in asked.blob_ids)
    blobs = {blob_id: blob for blob_id, blob in located if blob is not None}
    written = EmailsWritten(asking, "parsed", "{}")

    def read(blob: FoundBlob) -> AbstractContextManager[bytes]:
        return _octets(asking, blob)

    def put(blob_id: str, email: dict[str, JSON]) -> None:
        written.put_parsed(blob_id, email, blobs[blob_id].email_id)

    rest: Found = {"accountId": asking.snapshot.account_id}
    found: AgentParsed | Parsed
    if isinstance(asked, AgentEmailParseArguments):
        found = agent_email_parse(blobs, asked, read, put, go_on)
        rest["leftOut"] = {"ids": found.left_out, "texts": found.texts}
    else:
        found = email_parse(blobs, asked, read, put, go_on)
    rest |= {"notParsable": found.not_parsable or None, "notFound": found.not_found or None}
    # The read log goes by Emails, and what is shown here belongs to the one that the blob lies in.
    return FoundEmails(rest | {"parsed": None}, ()) if written.is_empty else written.found(rest)


@contextmanager
def _octets(asking: Asking, blob: FoundBlob) -> Iterator[bytes]:
    try:
        opened = asking.blobs.open(asking.snapshot.account_id, blob)
    except BlobUnavailable as unavailable:
        kind = ErrorType.SERVER_UNAVAILABLE if unavailable.retryable else ErrorType.SERVER_FAIL
        raise MethodError(kind, unavailable.detail, ("blobIds",), unavailable.reason.value) from unavailable
    with opened, asking.snapshot.room.place(opened.size, asking.patience.go_on):
        yield opened.whole()
