"""Forms, parsed once at the door."""

import asyncio
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from change_executor.review.decisions import MAX_DECISION_REASON_CHARACTERS, LookedAt
from change_executor.review.error_page import PageError, Refusal
from shared.fence import clean

# The longest form decides fifty together: some 5 KiB, and 6 KiB for a reason, percent-encoded.
MAX_FORM_OCTETS: Final = 16 * 1024
# A browser sends a form in one go.
FORM_SECONDS: Final = 10.0
# Fifty that are decided together, and what goes with them.
_MAX_FIELDS: Final = 64
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_VERSION: Final = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
# 18 digits stay below what SQLite numbers rows with.
_SEQ: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
# Before the id of each proposal that several are decided together with.
SEEN_PREFIX: Final = "seen."
_SEEN: Final = re.compile(r"seen\.(P[0-9a-v]{20})", re.ASCII)
_SHOWN: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form; each name stands once."""

    fields: dict[str, str]

    def __repr__(self) -> str:
        return f"Form({sorted(self.fields)})"

    def text(self, name: str) -> str:
        """Return a field, or the empty string."""
        return self.fields.get(name, "")


async def read_form(request: Request) -> Form:
    """Return the form in a request's body. Raises `PageError` where it is none of ours."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM_TYPE:
        raise PageError(Refusal.MALFORMED_FORM)
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_OCTETS:
                    raise PageError(Refusal.FORM_TOO_LARGE)
    except TimeoutError:
        raise PageError(Refusal.FORM_TOO_SLOW) from None
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError:
        raise PageError(Refusal.MALFORMED_FORM) from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise PageError(Refusal.MALFORMED_FORM)
    return Form(fields)


def looked_at(proposal_id: str, form: Form) -> LookedAt:
    """Return what the form says that the person saw. Raises `PageError`."""
    version, shown = form.text("version"), form.text("shown")
    if _VERSION.fullmatch(version) is None or _SHOWN.fullmatch(shown) is None:
        raise PageError(Refusal.MALFORMED_FORM)
    return LookedAt(proposal_id, int(version), shown)


def looked_at_together(form: Form) -> list[LookedAt]:
    """Return what the form says that the person saw of each that is chosen, in the form's order. Raises `PageError`.

    Each is a field `seen.ID` with the value `VERSION.DIGEST`: a checkbox, so that what is not checked is not sent.
    """
    chosen = []
    for name, value in form.fields.items():
        if (match := _SEEN.fullmatch(name)) is not None:
            version, _, shown = value.partition(".")
            chosen.append(looked_at(match[1], Form({"version": version, "shown": shown})))
    return chosen


def seen_in(form: Form) -> int:
    """Return the last event that the page of a form knew of. Raises `PageError`."""
    if _SEQ.fullmatch(form.text("seen")) is None:
        raise PageError(Refusal.MALFORMED_FORM)
    return int(form.text("seen"))


def decision_reason(form: Form) -> str:
    """Return the reason of a rejection, cleaned, since an agent's terminal may show it; empty for none.

    Raises `PageError` where it is too long.
    """
    reason = clean(form.text("reason")).text.strip()
    if len(reason) > MAX_DECISION_REASON_CHARACTERS:
        raise PageError(Refusal.REASON_TOO_LONG)
    return reason
