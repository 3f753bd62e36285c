"""The refusals of the tools that read, one function each."""

from collections.abc import Sequence
from typing import Final

from agent_reader.query import QueryRefused
from agent_reader.query.errors import TIME_LIMIT
from agent_reader.tool_answers.refusals import ToolRefused

_LOOK: Final = "Ids come from search_mail, whats_new and read_thread; they begin with M (messages) or T (threads)."


def unknown_account(accounts: tuple[str, ...]) -> ToolRefused:
    """Refuse a call that names none of the accounts."""
    return ToolRefused(
        "unknown_account", "`account` names no account of this token.", f"Use one of {', '.join(accounts)}."
    )


def unknown_email(count: int = 1) -> ToolRefused:
    """Refuse ids that lead nowhere; whether a message is hidden or gone is not told apart."""
    which = "No message has this id" if count == 1 else f"No message has any of these {count} ids"
    return ToolRefused("unknown_email", f"{which}, or the token does not show it.", f"{_LOOK} Search again.")


def ambiguous_id(email_ids: Sequence[str]) -> ToolRefused:
    """Refuse the beginning of several ids; each is named whole."""
    return ToolRefused(
        "ambiguous_id",
        f"Several messages have ids that begin so: {', '.join(email_ids)}.",
        "Call again with one of them in full.",
    )


def unknown_thread() -> ToolRefused:
    """Refuse a thread id that leads nowhere."""
    return ToolRefused("unknown_thread", "No thread or message has this id, or the token does not show it.", _LOOK)


def unknown_mailbox() -> ToolRefused:
    """Refuse a mailbox that is not there."""
    return ToolRefused(
        "unknown_mailbox",
        "`mailbox` is neither the id, the role nor the name of a mailbox.",
        "list_mailboxes shows them; the id always works.",
    )


def unknown_attachment(count: int) -> ToolRefused:
    """Refuse a number past the last attachment."""
    has = f"has {count} attachment{'' if count == 1 else 's'}" if count else "has no attachments"
    return ToolRefused("unknown_attachment", f"The message {has}.", "read_mail lists them with their numbers.")


def past_the_end(length: int) -> ToolRefused:
    """Refuse a window that begins after the text."""
    return ToolRefused("past_the_end", f"The text ends at {length}.", "Call again with a smaller `offset`.")


def stale_cursor() -> ToolRefused:
    """Refuse a continuation whose place is no longer there."""
    return ToolRefused("stale_cursor", "The place where to go on is no longer there.", "Call again without `cursor`.")


def question_refused(refused: QueryRefused) -> ToolRefused:
    """Return the refusal for a question that the index refused; its words name our conditions only."""
    if refused.code == TIME_LIMIT:
        return took_too_long()
    if refused.type == "requestTooLarge":
        return ToolRefused("answer_too_large", "The answer would be too large.", "Ask for less of it.")
    return ToolRefused("bad_search", refused.description, "Mend the argument that it names and call again.")


def took_too_long() -> ToolRefused:
    """Refuse what could not be found or read in time."""
    return ToolRefused(
        "took_too_long",
        "This took too long and was ended; no part of an answer was left out.",
        "Ask for fewer messages at once, or narrow the search by a mailbox, dates or rarer words.",
    )


def fault(fault_id: str) -> ToolRefused:
    """Say that the server failed; the log has the place under the same id."""
    return ToolRefused(
        "server_fault",
        f"The server failed at this call (fault {fault_id}).",
        "Try once more; if it fails again, tell the person who runs this server the fault's id.",
    )


def log_unavailable() -> ToolRefused:
    """Refuse to show what cannot be put on record."""
    return ToolRefused(
        "read_log_unavailable",
        "The read log cannot be written now, and no mail is shown unrecorded.",
        "Try again in a minute; the person who runs this server finds the cause in its log.",
    )


def octets_unavailable(code: str, *, retryable: bool) -> ToolRefused:
    """Say that the mail server does not give what the index does not keep; `code` is one of ours."""
    return ToolRefused(
        "attachment_unavailable",
        f"The attachment is not kept here, and its octets cannot be had ({code}).",
        "Try again in a minute." if retryable else "Do without it; only its name, type and size are known.",
    )
