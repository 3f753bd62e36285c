"""From untrusted octets to a caller and a request: who asks, and what exactly; one `Problem` for everything else."""

import asyncio
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request

from change_executor.errors import JournalUnavailable
from change_executor.intake import problems
from change_executor.intake.proposer_tokens import Proposer, TokenFault, opened_by
from change_executor.journal.idempotency import Key
from change_executor.journal.journal import Journal
from shared.identity import is_unprovable_email_id, is_unstable_email_id
from shared.ijson import NotIJson, load
from shared.problem import Problem
from shared.proposal import MAX_BODY_OCTETS, ProposalRequest, State
from shared.tokens import Token, TokenKind, bearer_of, parse_token

# 8 KiB over loopback take no time; a body that trickles holds a connection and nothing else.
BODY_SECONDS: Final = 10.0

MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 50


_KEY: Final = re.compile(rf"[!-~]{{1,{problems.MAX_KEY_CHARACTERS}}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Listing:
    """What `GET /v1/proposals` asks for; `before` is the last row of the page before, by time and id."""

    state: State | None
    limit: int
    before: tuple[int, str] | None


async def caller(request: Request, journal: Journal, now: datetime) -> Proposer:
    """Return who asks. Raises a 401 `Problem`; the token itself is never kept or logged."""
    fields = request.headers.getlist("authorization")
    secret = bearer_of(fields[0]) if len(fields) == 1 else None
    if secret is None:
        raise problems.token_missing()
    token = parse_token(secret)
    if token is None:
        raise problems.token_malformed()
    if token.kind is not TokenKind.PROPOSER:
        raise problems.wrong_token_kind()

    try:
        with journal.glancing() as connection:
            found = opened_by(connection, token, now)
    except JournalUnavailable:
        found = await asyncio.to_thread(_patiently, journal, token, now)
    if isinstance(found, TokenFault):
        raise problems.token_refused(found)
    return found


def _patiently(journal: Journal, token: Token, now: datetime) -> Proposer | TokenFault:
    with journal.reading() as connection:
        return opened_by(connection, token, now)


async def proposal_request(request: Request) -> ProposalRequest:
    """Return the proposal in the body. Raises a `Problem` for anything else; past the limit nothing is read."""
    content_types = request.headers.getlist("content-type")
    media_type, _, parameters = (content_types[0] if len(content_types) == 1 else "").partition(";")
    if (
        media_type.strip().lower() != "application/json"
        or parameters.strip().lower().replace('"', "") not in {"", "charset=utf-8"}
        or "content-encoding" in request.headers
    ):
        raise problems.unsupported_media_type()
    return parsed(await _body(request))


def idempotency_key(request: Request, asked: ProposalRequest) -> Key | None:
    """Return the Idempotency-Key of a request with what it asks for, None without one. Raises a `Problem`."""
    fields = request.headers.getlist("idempotency-key")
    if not fields:
        return None
    text = fields[0].strip()
    if len(fields) > 1 or _KEY.fullmatch(text) is None:
        raise problems.invalid_idempotency_key()
    # What was understood, so that another spelling of the same request is the same request.
    understood = asked.model_dump_json(by_alias=True)
    return Key(_sha256(text), _sha256(understood))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _body(request: Request) -> bytes:
    declared = request.headers.get("content-length", "0")
    if not declared.isascii() or not declared.isdigit() or len(declared) > 9 or int(declared) > MAX_BODY_OCTETS:  # noqa: PLR2004 - digits enough to be too large
        raise problems.body_too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                piece = await request.receive()
                if piece["type"] != "http.request":
                    # The client is gone.
                    raise problems.body_too_slow()
                body += piece.get("body", b"")
                if len(body) > MAX_BODY_OCTETS:
                    raise problems.body_too_large()
                if not piece.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise problems.body_too_slow() from None


def parsed(untrusted_body: bytes) -> ProposalRequest:
    """Return the proposal in a body, or raise the `Problem` that names the first thing wrong with it."""
    try:
        content = load(untrusted_body)
    except NotIJson as error:
        raise problems.not_json(str(error)) from None
    if not isinstance(content, dict):
        raise problems.not_an_object()
    # By their names on the wire only: the model would take its own field names too.
    for name in content:
        if name not in _FIELDS:
            raise problems.unknown_field(_shown(name))
    try:
        return ProposalRequest.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise _problem_of(first, content.get("emailId")) from None


_FIELDS: Final = frozenset({"emailId", "from", "to", "reason", "queue"})


def _problem_of(error: ErrorDetails, email_id: object) -> Problem:
    name = str(error["loc"][0])
    if error["type"] == "missing":
        return problems.missing_field(name)
    if name != "emailId":
        return problems.invalid_field(name, error["type"])
    # The reader's ids of other kinds are well-formed, and cannot be proved.
    if isinstance(email_id, str) and is_unstable_email_id(email_id):
        return problems.identity_unstable()
    if isinstance(email_id, str) and is_unprovable_email_id(email_id):
        return problems.identity_unknown()
    return problems.malformed_email_id()


def listing(request: Request) -> Listing:
    """Return what a list of proposals is asked for by. Raises a `Problem`."""
    parameters = request.query_params
    for name in parameters:
        if name not in {"state", "limit", "cursor"} or len(parameters.getlist(name)) > 1:
            raise problems.unknown_parameter(_shown(name))
    return Listing(_state(parameters.get("state")), _limit(parameters.get("limit")), _before(parameters.get("cursor")))


def no_parameters(request: Request) -> None:
    """Refuse any query parameter: what is not understood is not passed over."""
    if not request.scope["query_string"]:
        return
    for name in request.query_params:
        raise problems.unknown_parameter(_shown(name))


def _state(untrusted_text: str | None) -> State | None:
    if untrusted_text is None:
        return None
    try:
        return State(untrusted_text)
    except ValueError:
        raise problems.invalid_parameter("state", f"one of {', '.join(State)}") from None


def _limit(untrusted_text: str | None) -> int:
    if untrusted_text is None:
        return DEFAULT_LIMIT
    if not untrusted_text.isascii() or not untrusted_text.isdigit() or len(untrusted_text) > len(str(MAX_LIMIT)):
        raise problems.invalid_parameter("limit", f"a number from 1 to {MAX_LIMIT}")
    limit = int(untrusted_text)
    if not 1 <= limit <= MAX_LIMIT:
        raise problems.invalid_parameter("limit", f"a number from 1 to {MAX_LIMIT}")
    return limit


def cursor_of(created_at: int, proposal_id: str) -> str:
    """Return the cursor that continues after this row."""
    return f"{created_at}.{proposal_id}"


def _before(untrusted_text: str | None) -> tuple[int, str] | None:
    if untrusted_text is None:
        return None
    moment, _, proposal_id = untrusted_text.partition(".")
    # 18 digits of microseconds reach beyond the year 30000 and stay below what SQLite holds.
    if not moment.isascii() or not moment.isdigit() or len(moment) > 18 or not 0 < len(proposal_id) <= 40:  # noqa: PLR2004 - see above
        raise problems.invalid_parameter("cursor", "the `cursor` of the page before, unchanged")
    return int(moment), proposal_id


def _shown(untrusted_name: str) -> str:
    # A name is given back so that it can be found, cut and in ASCII so that it stays a name.
    return json.dumps(untrusted_name[:40])[1:-1]
