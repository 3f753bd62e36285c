"""Answers the method calls of one Request, in order (RFC 8620 §3.3 to §3.7); knows no HTTP.

The order of refusals: accountNotFound, accountReadOnly, then the arguments (the profile for AI agents); an unknown
capability was refused before. A call that fails, fails alone.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

import msgspec

from agent_reader.access import Shown
from agent_reader.damage import MessageDamaged
from agent_reader.door.faults import Faults
from agent_reader.door.limits import Limits
from agent_reader.jmap.asking import Asking
from agent_reader.jmap.capabilities import AGENT
from agent_reader.jmap.errors import READ_ONLY, ErrorType, MethodError
from agent_reader.jmap.methods import Absent, Change, Echo, Method, NoAccount, Read
from agent_reader.jmap.references import Budget, Response, resolved
from agent_reader.jmap.request import Invocation, Request
from agent_reader.jmap.sheet import Sheet
from agent_reader.jmap.shown_parts import parts_shown
from agent_reader.query import BlobReader
from agent_reader.query.errors import TIME_LIMIT, QueryRefused
from agent_reader.query.kept_readings import KeptReadings
from agent_reader.query.patience import Abandoned, Patience
from agent_reader.scope import Scope
from agent_reader.store.reading_room import ReadingRoom
from agent_reader.store.snapshot import Snapshot
from shared.time_and_chance import Monotonic


class Snapshots(Protocol):
    """What the dispatch needs of the store."""

    def snapshot(
        self, account_id: str, scope: Scope, is_over: Callable[[], bool] = ...
    ) -> AbstractContextManager[Snapshot]:
        """Give one consistent view of what a scope lets through of an account; once `is_over` nothing can be asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The responses of a request, in order, and what they show of mail: that goes on record before they leave."""

    responses: tuple[Response, ...]
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Answers requests; any thread may call."""

    snapshots: Snapshots
    account_ids: Collection[str]
    methods: Mapping[str, Method]
    limits: Limits
    faults: Faults
    blobs: BlobReader
    monotonic: Monotonic = time.monotonic

    def may_be_tried(self, request: Request) -> bool:
        """Whether an answer can be tried where nothing else happens meanwhile."""
        # The extension reads what others only copy.
        return AGENT not in request.using and all(
            isinstance(method := self.methods.get(call.name), Read) and method.may_be_tried for call in request.calls
        )

    def answer(
        self,
        request: Request,
        scope: Scope,
        sheet: Sheet,
        is_abandoned: Callable[[], bool] = lambda: False,
        room: ReadingRoom | None = None,
    ) -> Answer:
        """Write the answer to every call, of what the scope lets through, as a JSON array.

        Each account is seen in one state. Raises `Abandoned` once `is_abandoned`: between calls, and between messages.
        Messages are read in `room`; left out, in that of the store.
        """
        with ExitStack() as opened:
            running = _Running(self, request, scope, opened, sheet, is_abandoned, room)
            sheet.write(b"[")
            for call in request.calls:
                if is_abandoned():
                    raise Abandoned
                running.answer(call)
            sheet.write(b"]")
            return Answer(tuple(running.responses), tuple(running.shown))


class _Running:
    """One request while it is answered."""

    def __init__(
        self,
        dispatch: Dispatch,
        request: Request,
        scope: Scope,
        opened: ExitStack,
        sheet: Sheet,
        is_abandoned: Callable[[], bool],
        room: ReadingRoom | None,
    ) -> None:
        self.responses: list[Response] = []
        self.shown: list[Shown] = []
        self._dispatch, self._request, self._scope, self._opened = dispatch, request, scope, opened
        self._sheet, self._is_abandoned, self._room = sheet, is_abandoned, room
        # An account that the token does not have is none.
        self._account_ids = frozenset(each for each in dispatch.account_ids if scope.allows_account(each))
        self._snapshots: dict[str, Snapshot] = {}
        self._readings: defaultdict[str, KeptReadings] = defaultdict(KeptReadings)
        limits = dispatch.limits
        self._references = Budget(limits.max_referenced_octets, limits.max_brought_in_octets)
        self._until = dispatch.monotonic() + limits.max_request_seconds

    def answer(self, call: Invocation) -> None:
        before = self._sheet.octets
        try:
            self._check_time()
            shown = self._written(call)
        except Abandoned:
            raise
        except MethodError as error:
            self._refuse(call, error, before)
        except QueryRefused as error:
            self._refuse(call, MethodError(error.type, error.description, error.arguments, error.code), before)
        except MessageDamaged as error:
            for snapshot in self._snapshots.values():
                snapshot.note_damage()
            told = f"{error.detail} {error.fix}"
            self._refuse(call, MethodError(ErrorType.SERVER_UNAVAILABLE, told, code=error.code), before)
        except Exception as error:  # noqa: BLE001 - a bug in one call is this call's alone; it is logged
            if self._is_abandoned():
                # Which ends what the view is asked, wherever that is.
                raise Abandoned from None
            fault = self._dispatch.faults.note(call.name if call.name in self._dispatch.methods else "?", error)
            refused = MethodError(
                ErrorType.SERVER_FAIL,
                f"The server failed at this call (fault {fault}). Try once more; then tell the operator the id.",
            )
            self._refuse(call, refused, before)
        else:
            if shown is not None:
                self.shown.append(shown)

    def _check_time(self) -> None:
        if self._dispatch.monotonic() >= self._until:
            raise _no_time_left()

    def _written(self, call: Invocation) -> Shown | None:
        """Write the response of a call; what of it was written when it fails is taken back."""
        method = self._dispatch.methods.get(call.name)
        if method is None or method.capability not in self._request.using:
            raise _unknown_method(method)
        match method:
            case Absent():
                raise _unknown_method(method)
            case NoAccount():
                raise self._no_account(call)
            case Change():
                raise self._change_refused(method, call)
            case Echo():
                self._begin(call.name)
                start = self._sheet.octets
                self._take_room(msgspec.json.encode(resolved(call.arguments, self.responses, self._references)))
                self._end(call.name, call, start)
                return None
            case Read():
                return self._read(method, call)
            case _:
                assert_never(method)

    def _change_refused(self, method: Change, call: Invocation) -> MethodError:
        if not method.has_account:
            return MethodError(ErrorType.FORBIDDEN, READ_ONLY)
        named = {name: value for name, value in call.arguments.items() if name in {"accountId", "#accountId"}}
        try:
            account_id = resolved(named, self.responses, self._references).get("accountId")
        except MethodError:
            # Of what is wrong with the arguments of a change nothing is told.
            account_id = None
        if isinstance(account_id, str) and account_id not in self._account_ids:
            return _account_not_found()
        return MethodError(ErrorType.ACCOUNT_READ_ONLY, READ_ONLY)

    def _no_account(self, call: Invocation) -> MethodError:
        _, _ = self._arguments(call)
        return MethodError(
            ErrorType.ACCOUNT_NOT_SUPPORTED_BY_METHOD, "No account here can send mail; the server reads."
        )

    def _read(self, method: Read, call: Invocation) -> Shown:
        arguments, account_id = self._arguments(call)
        self._begin(call.name)
        start = self._sheet.octets
        found = method.function(self._asking(account_id), arguments)
        rest = msgspec.json.encode(found)
        # Emails were written as they came, as the first member of the object.
        self._take_room(b"," + rest[1:] if self._sheet.octets > start else rest)
        octets = self._sheet.octets - start
        self._end(call.name, call, start)
        email_ids, opened_ids = method.shows(found)
        return Shown(call.name, account_id, email_ids, opened_ids, octets, parts_shown(found))

    def _arguments(self, call: Invocation) -> tuple[dict[str, Any], str]:
        """The account comes before the other arguments, also where one of them is a reference that leads nowhere."""
        spelled = call.arguments.get("accountId")
        if isinstance(spelled, str) and spelled not in self._account_ids:
            raise _account_not_found()
        arguments = resolved(call.arguments, self.responses, self._references)
        account_id = arguments.get("accountId")
        if not isinstance(account_id, str):
            raise MethodError(ErrorType.INVALID_ARGUMENTS, "`accountId` is missing or no string.", ("accountId",))
        if account_id not in self._account_ids:
            raise _account_not_found()
        return arguments, account_id

    def _asking(self, account_id: str) -> Asking:
        dispatch = self._dispatch
        return Asking(
            snapshot=self._snapshot(account_id),
            limits=dispatch.limits,
            using=self._request.using,
            sheet=self._sheet,
            blobs=dispatch.blobs,
            patience=Patience(
                dispatch.monotonic,
                min(self._until, dispatch.monotonic() + dispatch.limits.max_query_seconds),
                self._until,
                self._is_abandoned,
            ),
            readings=self._readings[account_id],
        )

    def _take_room(self, encoded: bytes) -> None:
        if self._sheet.octets + len(encoded) > self._dispatch.limits.max_answer_octets:
            raise MethodError(ErrorType.REQUEST_TOO_LARGE, "The answer would be too large. Ask for less of it.")
        self._sheet.write(encoded)

    def _begin(self, name: str) -> None:
        separator = b"," if self.responses else b""
        self._sheet.write(separator + b"[" + msgspec.json.encode(name) + b",")

    def _end(self, name: str, call: Invocation, start: int) -> None:
        end = self._sheet.octets
        self._sheet.write(b"," + msgspec.json.encode(call.call_id) + b"]")
        self.responses.append(Response(name, call.call_id, self._sheet, start, end))

    def _snapshot(self, account_id: str) -> Snapshot:
        if account_id not in self._snapshots:
            opening = self._dispatch.snapshots.snapshot(account_id, self._scope, self._is_abandoned)
            snapshot = self._snapshots[account_id] = self._opened.enter_context(opening)
            if self._room is not None:
                snapshot.room = self._room
        return self._snapshots[account_id]

    def _refuse(self, call: Invocation, error: MethodError, before: int) -> None:
        self._sheet.cut(before)
        self._begin("error")
        start = self._sheet.octets
        self._sheet.write(msgspec.json.encode(error.document()))
        self._end("error", call, start)


def _no_time_left() -> MethodError:
    # RFC 8620 §3.6.2: this type lets the same call be tried again, and by itself it may well succeed.
    return MethodError(
        ErrorType.SERVER_UNAVAILABLE,
        "The calls before took all the time that a request has. Send this one in a request of its own.",
        code=TIME_LIMIT,
    )


def _unknown_method(method: Method | None) -> MethodError:
    if isinstance(method, Change):
        # With the capability in `using` it is refused all the same, or there is no such capability here.
        return MethodError(ErrorType.UNKNOWN_METHOD, READ_ONLY)
    if method is None or isinstance(method, Absent):
        return MethodError(ErrorType.UNKNOWN_METHOD, "This server does not have this method.")
    return MethodError(ErrorType.UNKNOWN_METHOD, f"This method needs {method.capability} in `using`.")


def _account_not_found() -> MethodError:
    return MethodError(ErrorType.ACCOUNT_NOT_FOUND, "There is no such account; the session lists them.")
