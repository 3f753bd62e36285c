"""What happens in a day: mail comes, the agent proposes, a person decides, and some of it is taken back."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import httpx

from deploy.demo.person import PageSurprise
from tests.end_to_end.houses import PASSWORD, PERSON, Found, eventually
from tests.servers.ports import free_port
from tests.soak.numbers import numbers

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from tests.end_to_end.houses import House, Houses, Person
    from tests.servers.dovecot import Dovecot

# Rounds of a day; each delivers and decides its share.
_HOURS: Final = 24
# Seconds: a program that was killed comes back within ten, and a doubt has its quiet time.
PATIENCE: Final = 120.0
_PLACES: Final = ("Incoming", "INBOX", "Archive")
_NO_LIMITS: Final = """\
max_pending_per_agent = 10000
max_proposals_per_hour = 10000
max_proposals_per_day = 100000
max_moves_per_hour = 10000
max_moves_per_day = 100000
"""


@dataclass
class Case:
    """One proposal: the message that it is about, by digest, and what was decided."""

    id: str
    sha256: str
    decision: str
    to: str


class Day:
    """Everything that is done to the houses, and what of it has to be true at the end."""

    def __init__(
        self,
        dovecot: Dovecot,
        houses: Houses,
        person: Person,
        chance: random.Random,
        *,
        deliveries: int,
        proposals: int,
    ) -> None:
        self._dovecot, self._houses, self._person, self._chance = dovecot, houses, person, chance
        self._deliveries, self._proposals = deliveries, proposals
        self._hour = 0
        self._addresses: dict[str, str] = {}
        self._samples: dict[str, list[tuple[float, float]]] = {"reader": [], "executor": []}
        self.delivered: dict[str, str] = {}
        self.cases: list[Case] = []
        self._free: list[tuple[str, str]] = []
        self._last_error = ""

    @property
    def share(self) -> float:
        """How much of the day is over, 0 to 1."""
        return self._hour / _HOURS

    @property
    def is_over(self) -> bool:
        """Whether it is over."""
        return self._hour >= _HOURS

    def prepare(self) -> None:
        """Write the settings that a day in an hour needs."""
        queue = self._houses.executor.config
        queue.write_text(queue.read_text().replace('incoming = "Incoming"\n', f'incoming = "Incoming"\n{_NO_LIMITS}'))
        for name, house in self._named():
            port = free_port()
            house.config.write_text(house.config.read_text() + f'\n[metrics]\nlisten = "127.0.0.1:{port}"\n')
            self._addresses[name] = f"http://127.0.0.1:{port}"

    def hour(self) -> None:
        """One round: deliver, propose, decide, take back."""
        self._deliver(self._due(self._deliveries) - len(self.delivered))
        made = [self._propose() for _ in range(self._due(self._proposals) - len(self.cases))]
        for case in made:
            self._decide(case)
        for case in made[::7]:
            if case.decision == "approve":
                self._take_back(case)
        self._hour += 1

    def _due(self, whole: int) -> int:
        return round(whole * (self._hour + 1) / _HOURS)

    def sample(self) -> None:
        """Note descriptors and memory of both programs."""
        for name, _ in self._named():
            found = self.numbers(name)
            self._samples[name].append((found["process_open_fds"], found["process_resident_memory_bytes"]))

    def finish(self) -> None:
        """Wait until everything has come to rest."""
        eventually(self._is_quiet, "every proposal to end", PATIENCE)
        eventually(self._is_whole, "the reader to have every message", PATIENCE * 2)
        self.sample()

    def findings(self) -> Iterator[str]:
        """Yield what grew in the calm part."""
        for name, samples in self._samples.items():
            (first_fds, first_octets), (last_fds, last_octets) = samples[0], samples[-1]
            # A pool may hold a few connections more; what leaks with each message or proposal is far above it.
            if last_fds > first_fds + 12:
                yield f"{name}: {first_fds:.0f} descriptors became {last_fds:.0f}"
            # The caches of the index are bounded (64 MiB a connection); a leak is not.
            if last_octets > first_octets * 1.5 + 64 * 1024 * 1024:
                yield f"{name}: {first_octets / 1e6:.0f} MB became {last_octets / 1e6:.0f} MB"

    def sizes(self) -> Iterator[tuple[str, str]]:
        """Yield descriptors and megabytes over the calm part."""
        for name, samples in self._samples.items():
            yield name, ", ".join(f"{fds:.0f} fds {octets / 1e6:.0f} MB" for fds, octets in samples)

    def summary(self) -> str:
        """What was done so far."""
        return f"{len(self.delivered)} delivered, {len(self.cases)} proposed"

    def numbers(self, name: str) -> dict[str, float]:
        """What a monitor reads of `reader` or `executor`."""
        return self._insist(lambda: numbers(self._addresses[name]), f"the numbers of {name}")

    def _named(self) -> tuple[tuple[str, House], ...]:
        return ("reader", self._houses.reader), ("executor", self._houses.executor)

    def _deliver(self, count: int) -> None:
        by_place: dict[str, list[bytes]] = {place: [] for place in _PLACES}
        for number in range(len(self.delivered), len(self.delivered) + count):
            place = _PLACES[number % len(_PLACES)]
            octets = _message(number, self._chance.randrange(20, 6000))
            digest = hashlib.sha256(octets).hexdigest()
            by_place[place].append(octets)
            self.delivered[digest] = place
            if place == "Incoming":
                self._free.append((f"soak number{number} end", digest))
        for place, messages in by_place.items():
            self._dovecot.fill(place, messages)

    def _propose(self) -> Case:
        subject, digest = self._free.pop(self._chance.randrange(len(self._free)))
        to = self._chance.choice(["processed", "escalate"])
        email_id = self._insist(lambda: self._houses.find(subject), f"the reader to have {subject}")
        case = self._insist(lambda: self._asked(email_id, to), f"to propose {subject}")
        decision = self._chance.choices(["approve", "reject", "withdraw", "leave"], [70, 15, 10, 5])[0]
        self.cases.append(Case(case, digest, decision, to))
        return self.cases[-1]

    def _asked(self, email_id: str, to: str) -> str:
        body = {"emailId": email_id, "from": "incoming", "to": to, "queue": "support"}
        answer = self._houses.intake("POST", "/v1/proposals", json=body)
        # 200: it was taken the first time, and only the answer was lost.
        assert answer.status_code in {200, 201}, answer.text
        return str(answer.json()["id"])

    def _decide(self, case: Case) -> None:
        if case.decision == "leave":
            return
        if case.decision == "withdraw":
            self._insist(lambda: self._withdrawn(case.id), f"to withdraw {case.id}")
            return
        expected = {"approve": {"approved", "applying", "doubtful", "applied"}, "reject": {"rejected"}}[case.decision]
        self._insist(lambda: self._press(case.id, case.decision, expected), f"to {case.decision} {case.id}")

    def _withdrawn(self, proposal_id: str) -> bool:
        if self._state(proposal_id) != "withdrawn":
            self._houses.intake("POST", f"/v1/proposals/{proposal_id}/withdraw")
        return self._state(proposal_id) == "withdrawn"

    def _press(self, proposal_id: str, action: str, reached: set[str]) -> bool:
        """Press a button unless it was pressed before and only the answer was lost."""
        if self._state(proposal_id) in reached:
            return True
        page = self._person.offers(proposal_id, action)
        if page is None:
            if "/sign-in" in str(self._person.item(proposal_id).url):
                self._person.sign_in(PERSON, PASSWORD)
            return False
        with contextlib.suppress(PageSurprise):
            self._person.submit(page, f"/p/{proposal_id}/{action}", {})
        return self._state(proposal_id) in reached

    def _take_back(self, case: Case) -> None:
        self._insist(lambda: self._state(case.id) == "applied", f"{case.id} to be applied")
        case.decision = "undo"
        self._insist(
            lambda: self._press(case.id, "undo", {"undoing", "undo_doubtful", "undone"}), f"to take {case.id} back"
        )

    def _state(self, proposal_id: str) -> str:
        return str(self._houses.proposal(proposal_id)["state"])

    def _is_quiet(self) -> bool:
        found = self.numbers("executor")
        moving = ("approved", "applying", "doubtful", "undoing", "undo_doubtful")
        return not any(found[f'mailwarrant_proposals{{state="{state}"}}'] for state in moving)

    def _is_whole(self) -> bool:
        found = self.numbers("reader")
        return found['mailwarrant_index_messages{account="shop"}'] == len(self.delivered)

    def _insist(self, look: Callable[[], Found | None], what: str) -> Found:
        """Try until it works: whoever is asked may be starting anew."""

        def tried() -> Found | None:
            try:
                return look()
            except (httpx.HTTPError, AssertionError) as error:
                self._last_error = repr(error)[:300]
                return None

        try:
            return eventually(tried, what, PATIENCE)
        except AssertionError as error:
            logs = "".join(f"\n{name}: {house.log[-1500:]}" for name, house in self._named())
            raise AssertionError(f"{error}; last: {self._last_error}{logs}") from None


def _message(number: int, octets: int) -> bytes:
    body = f"This is the body of message {number}. " * (octets // 40 + 1)
    return (
        f"From: Customer {number % 97} <c{number % 97}@example.org>\r\nTo: shop@example.org\r\n"
        f"Subject: soak number{number} end\r\nMessage-ID: <soak-{number}@example.org>\r\n"
        f"Date: Mon, 30 Nov 2026 08:00:00 +0000\r\n\r\n{body}\r\n"
    ).encode()
