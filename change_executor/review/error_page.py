"""Every refusal of the page: a closed table of what is said, and always a way out.

Rendered without a session and without the journal, so that it can be shown when either is missing.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import quote

from starlette.responses import HTMLResponse

from change_executor.review.headers import SECURITY_HEADERS
from change_executor.review.rendering import render


@dataclass(frozen=True, slots=True)
class Words:
    """What a refusal says: a title, what is so, and what to do; `way_out` is a path of ours and its link's text."""

    status: int
    title: str
    what: str
    fix: str
    way_out: tuple[str, str] = ("/", "To the queue")


class Refusal(Enum):
    """Why a request got nowhere."""

    WRONG_HOST = Words(
        421,
        "Not under this name",
        "This page answers only under its own name.",
        "Open it as http://localhost with the port that change-executor serve printed.",
    )
    OTHER_ORIGIN = Words(
        403,
        "That did not come from this page",
        "The request came from another site, or from a program that does not say where it comes from.",
        "Nothing was changed. Open the queue and decide there.",
    )
    SIGNED_OUT = Words(
        401,
        "You are signed out",
        "Your session ended before this arrived. Nothing was decided.",
        "Sign in again; you come back to where you were.",
        ("/sign-in", "Sign in"),
    )
    STALE_FORM = Words(
        403,
        "That form is not yours any more",
        "The form belongs to another session. Nothing was changed.",
        "Open the page again and repeat what you did.",
    )
    STOPPED_AGAIN = Words(
        409,
        "It was stopped again",
        "Somebody stopped everything after this page was made. Nothing was resumed.",
        "Open the page again, find out who and why, and resume then.",
    )
    NOT_AN_ADMINISTRATOR = Words(
        403,
        "That takes an administrator",
        "Tokens and people are an administrator's. Nothing was changed.",
        "Ask one of them; the settings list who they are.",
        ("/settings", "To the settings"),
    )
    NOTHING_TO_PROVE_BY = Words(
        403,
        "Set a password or a passkey first",
        "This asks for your password or a passkey once more, and you have neither yet. Nothing was changed.",
        "Set one of them, then repeat what you did.",
        ("/password", "Set one"),
    )
    PASSKEY_REFUSED = Words(
        422,
        "That passkey was not kept",
        "What the browser sent was not made for this page just now, or there are ten passkeys already.",
        "Open the settings again and add it once more.",
        ("/settings", "To the settings"),
    )
    LAST_WAY_IN = Words(
        422,
        "That is your only way in",
        "Without it nothing would let you in any more. Nothing was changed.",
        "Set a password, or add another passkey, first.",
        ("/settings", "To the settings"),
    )
    PERSON_REFUSED = Words(
        422,
        "That cannot be done to this person",
        "Nobody is called so, or somebody already is, or no administrator would be left. Nothing was changed.",
        "Look at the list of people again.",
        ("/settings", "To the settings"),
    )
    MALFORMED_FORM = Words(
        400,
        "That form cannot be read",
        "The request is not a form of this page.",
        "Open the page again and use its buttons.",
    )
    FORM_TOO_LARGE = Words(
        413, "That form is too large", "Forms of this page have at most 16 KiB.", "Shorten what you typed."
    )
    FORM_TOO_SLOW = Words(
        408,
        "That form took too long",
        "The form did not arrive within ten seconds. Nothing was changed.",
        "Open the page again and repeat what you did.",
    )
    REASON_TOO_LONG = Words(
        422,
        "That reason is too long",
        "A reason has at most 500 characters.",
        "Go back and shorten it. Nothing was decided.",
    )
    NOT_FOUND = Words(
        404,
        "Nothing is here",
        "There is no such page, or no such proposal.",
        "It may have been mistyped. The queue lists what there is.",
    )
    WRONG_METHOD = Words(
        405,
        "Not like that",
        "This address does not take that kind of request.",
        "Use the page's own links and buttons.",
    )
    TOO_MANY_STREAMS = Words(
        503,
        "Too many open pages",
        "This page is open in too many windows to be kept live in one more.",
        "Close some of them.",
    )
    TOO_MANY_SIGN_INS = Words(
        503,
        "Too many people are signing in",
        "Passwords are checked two at a time.",
        "Try again in a few seconds.",
        ("/sign-in", "Sign in"),
    )
    JOURNAL_UNAVAILABLE = Words(
        503,
        "The journal cannot be used",
        "The record of decisions cannot be read or written just now. Nothing is done unrecorded.",
        "Look at the disk and the log of change-executor on its machine, then try again.",
    )
    BUG = Words(
        500,
        "Something went wrong here",
        "This is a mistake in the program, not in what you did.",
        "Open the queue to see how things stand; the log of change-executor says more.",
    )


class PageError(Exception):
    """Ends a request with a refusal; `next_path` is where signing in should lead, a path of ours.

    `written` is what the person had written, given back to them.
    """

    def __init__(self, refusal: Refusal, next_path: str | None = None, written: str = "") -> None:
        super().__init__(refusal.name.lower())
        self.refusal, self.next_path, self.written = refusal, next_path, written


_BY_STATUS: Final = {404: Refusal.NOT_FOUND, 405: Refusal.WRONG_METHOD, 413: Refusal.FORM_TOO_LARGE}


def refuse(refusal: Refusal, next_path: str | None = None, written: str = "") -> HTMLResponse:
    """Return the page of a refusal, with what the person had written."""
    words = refusal.value
    path, label = words.way_out
    if next_path is not None and refusal is Refusal.SIGNED_OUT:
        path = f"/sign-in?next={quote(next_path)}"
    return HTMLResponse(
        render("error.html", refusal=words, way_out=path, way_out_label=label, written=written),
        status_code=words.status,
        headers=SECURITY_HEADERS,
    )


def refusal_of_status(status: int) -> Refusal:
    """Return the refusal for a status that the router or the framework gave."""
    return _BY_STATUS.get(status, Refusal.BUG if status >= 500 else Refusal.MALFORMED_FORM)  # noqa: PLR2004 - HTTP
