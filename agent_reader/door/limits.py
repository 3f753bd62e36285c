"""What one agent may ask at once, by whichever door, where the configuration says nothing else."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limits:
    """What one agent may ask at once. The profile's floor: 65,536 octets and 64 objects."""

    # Clients send lists of ids, and 500 of them are 20 KB; 10 MB is what other servers take.
    max_size_request: int = 10_000_000
    # Enough for the four-call chain four times over; one thread answers all of them.
    max_calls_in_request: int = 16
    # Known clients page by 100 or by 500.
    max_objects_in_get: int = 500
    # Each holds a thread and a snapshot; an agent works in a handful of steps at a time.
    max_concurrent_requests: int = 8
    # Each may wait for the mail server; the messages of one agent's step are asked for a few at a time.
    max_concurrent_downloads: int = 4
    # One stream tells of all accounts; an agent with several programs has one for each.
    max_event_streams: int = 8
    # Ten megabytes over a slow line; a body that trickles for longer holds one of its agent's own places.
    max_body_seconds: float = 30.0
    # A search that takes longer is asked too widely; the other requests of two cores wait for it.
    max_query_seconds: float = 5.0
    # All calls of a request together, whatever they do: four slow ones, not sixteen.
    max_request_seconds: float = 20.0
    # Each reference reads through the answer that it points into; sixteen calls that each point into all before are an
    # attack or a mistake.
    max_referenced_octets: int = 64 * 1024 * 1024
    # What references bring in: ids, some hundred of 40 octets. As objects they take thirty times as much.
    max_brought_in_octets: int = 1024 * 1024
    # Larger answers than any context holds; past this it is asked for in parts.
    max_answer_octets: int = 32 * 1024 * 1024
    # Sixteen calls with 500 ids each stay below; of larger bodies an agent sends one at a time.
    max_small_body_octets: int = 512 * 1024


DEFAULT_LIMITS: Final = Limits()
