"""What the mover says of one MOVE, told precisely enough to know what may still happen."""

from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    """How far one MOVE came.

    `NOTHING_SENT`: no octet of it left, so nothing can happen. `REFUSED`: the server said NO or BAD. `OK`: the server
    said OK, which alone proves nothing. `UNKNOWN`: it left, or part of it may have, and no answer came.
    """

    NOTHING_SENT = "nothing_sent"
    REFUSED = "refused"
    OK = "ok"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CopyUid:
    """RFC 4315 §3, for one message: the target's UIDVALIDITY, the UID it had, the UID it got."""

    uidvalidity: int
    source_uid: int
    target_uid: int


@dataclass(frozen=True, slots=True)
class MoveReply:
    """One MOVE: the answer, and COPYUID where the server gave exactly one that can be read."""

    answer: Answer
    copyuid: CopyUid | None = None
