"""The closed table of methods: every one of RFC 8620 and RFC 8621, and what becomes of a call to it.

A method that changes something has no function behind it, here or anywhere in this house.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agent_reader.jmap.capabilities import CORE, MAIL, SUBMISSION, VACATION_RESPONSE
from agent_reader.jmap.parsing import answer_email_parse
from agent_reader.jmap.queries import (
    answer_changes,
    answer_email_query,
    answer_email_query_changes,
    answer_mailbox_query,
    answer_mailbox_query_changes,
    answer_snippets,
)
from agent_reader.jmap.reads import Answerer, answer_email_get, answer_mailbox_get, answer_thread_get
from agent_reader.jmap.shown_parts import FoundEmails
from agent_reader.store.changes import DataType

Found: TypeAlias = Mapping[str, Any]
# The Email ids that an answer names, and those whose body text is in it.
EmailIds: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Echo:
    """Core/echo."""

    capability: str


@dataclass(frozen=True, slots=True)
class Read:
    """A method that shows mail: the function that answers, and what its answer shows (for the read log).

    One that `may_be_tried` has all from the index, looks at the clock, and reads messages in the snapshot's room alone.
    """

    capability: str
    function: Answerer
    shows: Callable[[Found], EmailIds]
    may_be_tried: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A method that would change something: refused. `has_account` is False where it takes no accountId."""

    capability: str
    has_account: bool = True


@dataclass(frozen=True, slots=True)
class NoAccount:
    """A method that reads what no account here has (RFC 8621 §6 and §7: who may send, what was sent).

    Its capability is in no accountCapabilities, so a known account answers accountNotSupportedByMethod.
    """

    capability: str


@dataclass(frozen=True, slots=True)
class Absent:
    """A method that this server does not have: unknownMethod, never a wrong answer."""

    capability: str


Method: TypeAlias = Echo | Read | Change | NoAccount | Absent


def _no_emails(_found: Found) -> EmailIds:
    return (), ()


def _queried(found: Found) -> EmailIds:
    return tuple(found["ids"]), ()


def _changed(found: Found) -> EmailIds:
    return (*found["created"], *found["updated"]), ()


def _added(found: Found) -> EmailIds:
    return tuple(each["id"] for each in found["added"]), ()


def _snippets(found: Found) -> EmailIds:
    return tuple(snippet["emailId"] for snippet in found["list"]), ()


def _threads(found: Found) -> EmailIds:
    return tuple(email_id for thread in found["list"] for email_id in thread.get("emailIds", ())), ()


def _emails(found: Found) -> EmailIds:
    assert isinstance(found, FoundEmails)
    ids = dict.fromkeys(each.id for each in found.shown)
    return tuple(ids), tuple(dict.fromkeys(each.id for each in found.shown if each.has_text))


METHODS: Final[Mapping[str, Method]] = {
    # RFC 8620
    "Core/echo": Echo(CORE),
    "Blob/copy": Change(CORE),
    "PushSubscription/get": Absent(CORE),
    "PushSubscription/set": Change(CORE, has_account=False),
    # RFC 8621 §2
    "Mailbox/get": Read(MAIL, answer_mailbox_get, _no_emails),
    "Mailbox/changes": Read(MAIL, answer_changes(DataType.MAILBOX), _no_emails),
    "Mailbox/query": Read(MAIL, answer_mailbox_query, _no_emails),
    "Mailbox/queryChanges": Read(MAIL, answer_mailbox_query_changes, _no_emails),
    "Mailbox/set": Change(MAIL),
    # RFC 8621 §3
    "Thread/get": Read(MAIL, answer_thread_get, _threads, may_be_tried=True),
    "Thread/changes": Read(MAIL, answer_changes(DataType.THREAD), _no_emails),
    # RFC 8621 §4
    "Email/get": Read(MAIL, answer_email_get, _emails, may_be_tried=True),
    "Email/changes": Read(MAIL, answer_changes(DataType.EMAIL), _changed),
    "Email/query": Read(MAIL, answer_email_query, _queried, may_be_tried=True),
    "Email/queryChanges": Read(MAIL, answer_email_query_changes, _added),
    "Email/set": Change(MAIL),
    "Email/copy": Change(MAIL),
    "Email/import": Change(MAIL),
    "Email/parse": Read(MAIL, answer_email_parse, _emails),
    # RFC 8621 §5
    "SearchSnippet/get": Read(MAIL, answer_snippets, _snippets),
    # RFC 8621 §6, §7
    "Identity/get": NoAccount(SUBMISSION),
    "Identity/changes": NoAccount(SUBMISSION),
    "Identity/set": Change(SUBMISSION),
    "EmailSubmission/get": NoAccount(SUBMISSION),
    "EmailSubmission/changes": NoAccount(SUBMISSION),
    "EmailSubmission/query": NoAccount(SUBMISSION),
    "EmailSubmission/queryChanges": NoAccount(SUBMISSION),
    "EmailSubmission/set": Change(SUBMISSION),
    # RFC 8621 §8
    "VacationResponse/get": Absent(VACATION_RESPONSE),
    "VacationResponse/set": Change(VACATION_RESPONSE),
}
