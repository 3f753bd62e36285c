"""Answers questions about mail from one snapshot of the store: filters, sorts, and what an Email looks like.

Text of a question is data, never query syntax. Nothing here writes. What cannot be answered whole is refused
(`QueryRefused`), never answered in part. Standards: RFC 8620 §5.1 and §5.5, RFC 8621 §2 to §4.
"""

from agent_reader.query.agent_email_get import parse_agent_email_get
from agent_reader.query.blob_cache import BlobCache, OpenBlob
from agent_reader.query.blobs import FoundBlob, find_blob
from agent_reader.query.changes import changes, parse_changes
from agent_reader.query.email_changes import email_query_changes, parse_email_query_changes
from agent_reader.query.email_get import email_get_as_asked
from agent_reader.query.email_get_arguments import EmailGetArguments, parse_email_get
from agent_reader.query.email_parse import email_parse, parse_email_parse
from agent_reader.query.emails import (
    COLLATIONS,
    MAX_LIMIT,
    SORT_OPTIONS,
    EmailQueryArguments,
    email_query,
    leaves_texts_out,
    parse_email_query,
)
from agent_reader.query.errors import QueryRefused
from agent_reader.query.mailbox_query import (
    mailbox_query,
    mailbox_query_changes,
    parse_mailbox_query,
    parse_mailbox_query_changes,
)
from agent_reader.query.mailboxes import mailbox_get
from agent_reader.query.octets import BlobReader, BlobUnavailable, Unavailable
from agent_reader.query.results import GetResult, QueryResult
from agent_reader.query.snippets import parse_snippets, search_snippets
from agent_reader.query.threads import thread_get

__all__ = [
    "COLLATIONS",
    "MAX_LIMIT",
    "SORT_OPTIONS",
    "BlobCache",
    "BlobReader",
    "BlobUnavailable",
    "EmailGetArguments",
    "EmailQueryArguments",
    "FoundBlob",
    "GetResult",
    "OpenBlob",
    "QueryRefused",
    "QueryResult",
    "Unavailable",
    "changes",
    "email_get_as_asked",
    "email_parse",
    "email_query",
    "email_query_changes",
    "find_blob",
    "leaves_texts_out",
    "mailbox_get",
    "mailbox_query",
    "mailbox_query_changes",
    "parse_agent_email_get",
    "parse_changes",
    "parse_email_get",
    "parse_email_parse",
    "parse_email_query",
    "parse_email_query_changes",
    "parse_mailbox_query",
    "parse_mailbox_query_changes",
    "parse_snippets",
    "search_snippets",
    "thread_get",
]
