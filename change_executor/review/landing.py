"""Where a decision leads: to the next proposal of the list that a person works through, or back to that list.

Nothing there can be signed by a click or a key that was meant for the one before: no control has the focus, the
style sheet keeps the deciding buttons from being pressed for the length of a double click, and each form carries the
version and the digest of its own proposal.
"""

from urllib.parse import parse_qsl

from sqlalchemy import Connection

from change_executor.config import ExecutorSettings
from change_executor.errors import NoSuchProposal
from change_executor.journal.journal import Proposal, read_proposal
from change_executor.review.case import Case, read_case
from change_executor.review.forms import Form
from change_executor.review.queue_view import read_next
from change_executor.review.searching import Filters, filters_from
from shared.proposal import PROPOSAL_ID

# The value of a form's `then` that asks to be led on.
NEXT = "next"


def place_after(connection: Connection, form: Form, decided: Proposal) -> str:
    """Return the path that a decision leads to, which tells of it at its top.

    `list` is the query string of the list that the person came from; `beside` the proposal on whose page the form
    stood, where that is another than the one decided; `then` asks for the next one.
    """
    filters = list_of(form)
    page = form.text("beside") if PROPOSAL_ID.fullmatch(form.text("beside")) else None
    if page is None and form.text("then") == NEXT:
        page = read_next(connection, filters, decided)
    return ("/" if page is None else f"/p/{page}") + filters.query(done=decided.id)


def list_of(form: Form) -> Filters:
    """Return the filters of the list that a form was reached from."""
    return filters_from(dict(parse_qsl(form.text("list").removeprefix("?"))))


def read_decided(connection: Connection, settings: ExecutorSettings, untrusted_id: str) -> Case | None:
    """Return the case that a page tells of as just decided, or None where there is none of this id."""
    if PROPOSAL_ID.fullmatch(untrusted_id) is None:
        return None
    try:
        read_proposal(connection, untrusted_id)
    except NoSuchProposal:
        return None
    return read_case(connection, settings, untrusted_id)
