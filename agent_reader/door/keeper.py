"""Who asks, and how many requests of one agent are answered at once: the same at every door."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from agent_reader.access import Access, Agent
from agent_reader.damage import MessageDamaged
from agent_reader.door import problems
from agent_reader.door.faults import Faults
from agent_reader.door.gate import ClosingRefusal, refusal
from agent_reader.door.limits import DEFAULT_LIMITS
from agent_reader.errors import AccessUnavailable
from shared.problem import Problem

Refuse = Callable[[int], Problem]
Endpoint = Callable[[Request, Agent], Awaitable[Response]]

# At each door: all the places of a dozen agents. Most of them wait for their turn to read, and none for a thread.
MOST_THREADS: Final = 100


class Places:
    """The requests that are being answered, by agent; one for all doors. Belongs to the event loop.

    What lasts (a download, a stream) has places apart, and `refuse` says what there is too much of.
    """

    def __init__(
        self, most: int = DEFAULT_LIMITS.max_concurrent_requests, refuse: Refuse = problems.too_many_requests
    ) -> None:
        self._most, self._refuse = most, refuse
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, agent: Agent) -> Iterator[None]:
        """Hold one of the agent's places while the block runs. Raises a `Problem` where none is free."""
        if self._taken[agent.name] >= self._most:
            raise self._refuse(self._most)
        self._taken[agent.name] += 1
        try:
            yield
        finally:
            self._taken[agent.name] -= 1
            if not self._taken[agent.name]:
                del self._taken[agent.name]


class Keeper:
    """Authenticates, calls an endpoint, and turns every refusal into a problem document."""

    def __init__(self, access: Access, faults: Faults, endpoint: Endpoint, path: str) -> None:
        self._access, self._faults, self._endpoint, self._path = access, faults, endpoint, path

    async def answer(self, request: Request) -> Response:
        """Answer a request of any caller."""
        try:
            agent = self._agent(request)
            response = await self._endpoint(request, agent)
            # What shows mail was charged when it was put on record; the rest of an answer, or one without mail, here.
            rest = len(response.body) - agent.meter.charged if hasattr(response, "body") else 0
            if rest > 0:
                self._access.budgets.charge(agent, rest)
            return response
        except Problem as problem:
            return ClosingRefusal(problem) if problem.status in {408, 413} else refusal(problem)
        except AccessUnavailable as error:
            self._faults.note(self._path, error)
            return refusal(problems.log_unavailable())
        except MessageDamaged as error:
            return refusal(problems.message_damaged(error))
        except ClientDisconnect:
            # Nobody is there to read it; ASGI wants an answer all the same.
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the last resort: an id for the caller, the place for the log
            return refusal(problems.internal_fault(self._faults.note(self._path, error)))

    def _agent(self, request: Request) -> Agent:
        # In the event loop: one indexed look takes some microseconds and waits for no writer.
        fields = request.headers.getlist("authorization")
        peer = "" if request.client is None else request.client.host
        found = self._access.authenticate(fields[0] if len(fields) == 1 else None, peer)
        if isinstance(found, Problem):
            raise found
        self._access.budgets.check(found)
        return found
