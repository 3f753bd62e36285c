"""What comes out of questions, in JMAP's terms and as JSON values."""

from dataclasses import dataclass

from shared.message import JSON


@dataclass(frozen=True, slots=True)
class GetResult:
    """RFC 8620 §5.1: `list` in the order asked for, each id once; `not_found` likewise."""

    list: tuple[dict[str, JSON], ...]
    not_found: tuple[str, ...]
    state: str


@dataclass(frozen=True, slots=True)
class QueryResult:
    """RFC 8620 §5.5: `total` only where it was asked for; `limit` only where it is not the one asked for.

    `total_not_computed`: it was asked for, and counting would have taken too long. `texts_left_out`: words were looked
    for in bodies, and the text of some Email that is shown was not searched.
    """

    ids: tuple[str, ...]
    position: int
    total: int | None
    query_state: str
    limit: int | None = None
    can_calculate_changes: bool = False
    total_not_computed: bool = False
    texts_left_out: bool = False
