"""Search beside tantivy and notmuch, and the door beside a raw ASGI endpoint: `make bench-query`.

`python -m tests.bench.query [--folder F] [--rounds N] SIZE ...`; without sizes 10,000, 100,000 and 1,000,000. What was
filled lies in the folder and is used again. Each question is asked of one engine after the other, round by round, and
counts with its median CPU time: the machine's other work is no part of that. Prints figures, ratios, and whether each
target is met; docs/query-bench.md tells what came out.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from agent_reader.query import email_get
from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT
from tests.bench import query_served, query_store
from tests.bench.query_engines import PAGE, Engine, Notmuch, Ours, Tantivy
from tests.bench.query_mail import Mail, word
from tests.bench.query_questions import Question, questions

_SIZES: Final = (10_000, 100_000, 1_000_000)
# It takes two hours for a million.
_MOST_FOR_NOTMUCH: Final = 100_000

_ROUNDS: Final = 5
_COMMON_RANK: Final = 20
_MILLISECONDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Milliseconds over all questions."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Percentiles":
        """Return those of some measurements."""
        found = sorted(seconds)
        return cls(*(found[int(len(found) * share)] * _MILLISECONDS for share in (0.5, 0.95, 0.99)))


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one size, one way of asking: seconds by engine and question."""

    questions: Sequence[Question]
    seconds: dict[str, list[float]]

    def percentiles(self, engine: str) -> Percentiles:
        return Percentiles.of(self.seconds[engine])

    def of_kind(self, engine: str, kind: str) -> float:
        pairs = zip(self.questions, self.seconds[engine], strict=True)
        return median(seconds for question, seconds in pairs if question.kind == kind) * _MILLISECONDS


def main() -> None:
    """Fill what is missing, ask, and print."""
    parser = argparse.ArgumentParser(prog="tests.bench.query")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("sizes", type=int, nargs="*", default=_SIZES)
    asked = parser.parse_args()
    newest = {}
    for size in asked.sizes:
        newest[size] = _one_size(asked.folder, Mail(size), asked.rounds)
    _say_growth(newest)
    asyncio.run(_served(_place(asked.folder, "mailwarrant", asked.sizes[0]), asked.sizes[0]))


def _one_size(folder: Path, mail: Mail, rounds: int) -> Asked:
    _say(f"\n{mail.messages:,} messages")
    with_notmuch = mail.messages <= _MOST_FOR_NOTMUCH
    fillers: dict[str, Callable[[Path, Mail], float]] = {"mailwarrant": _fill_store, "tantivy": Tantivy.fill}
    if with_notmuch:
        fillers["notmuch"] = Notmuch.fill
    for name, fill in fillers.items():
        place = _place(folder, name, mail.messages)
        if not place.exists():
            _say(f"  {name}: filled with {mail.messages / fill(place, mail):,.0f} messages a second of CPU")
    ours = Ours(_place(folder, "mailwarrant", mail.messages))
    engines: list[Engine] = [ours, Tantivy(_place(folder, "tantivy", mail.messages))]
    if with_notmuch:
        engines.append(Notmuch(_place(folder, "notmuch", mail.messages)))
    _say_sizes(ours, mail)
    newest = _ask(engines, mail, rounds, "the newest 50", lambda engine: engine.newest)
    total = _ask(engines, mail, rounds, "the newest 50 and the total", lambda engine: engine.total)
    _say_targets(newest, total, mail.messages)
    ours.store.close()
    return newest


def _ask(
    engines: Sequence[Engine], mail: Mail, rounds: int, what: str, way: Callable[[Engine], Callable[[Question], int]]
) -> Asked:
    asked = questions(mail)
    taken: dict[str, list[list[float]]] = {engine.name: [[] for _ in asked] for engine in engines}
    differ = 0
    for number in range(rounds + 1):
        for place, question in enumerate(asked):
            answers = set()
            for engine in engines:
                ask = way(engine)
                started = time.thread_time()
                answers.add(ask(question))
                # The first round warms the caches.
                if number:
                    taken[engine.name][place].append(time.thread_time() - started)
            differ += number == 0 and len(answers) > 1 and not question.by_thread
    found = Asked(asked, {name: list(map(median, each)) for name, each in taken.items()})
    _say(f"  {what}: ms of CPU, p50 / p95 / p99; answers that differ in number: {differ} of {len(asked)}")
    for engine in engines:
        each = found.percentiles(engine.name)
        _say(f"    {engine.name:14} {each.p50:8.3f} / {each.p95:8.3f} / {each.p99:8.3f}")
    for kind in dict.fromkeys(question.kind for question in asked):
        _say(
            f"      {kind:22}"
            + "".join(f"{engine.name} {found.of_kind(engine.name, kind):8.3f}   " for engine in engines)
        )
    return found


def _say_targets(newest: Asked, total: Asked, messages: int) -> None:
    ours, theirs = newest.percentiles("mailwarrant"), newest.percentiles("tantivy")
    if "notmuch" in newest.seconds:
        slow = newest.percentiles("notmuch")
        _judge("newest 50, p50 of notmuch's", ours.p50 / slow.p50, 1 / 10)
        _judge("newest 50, p95 of notmuch's", ours.p95 / slow.p95, 1 / 15)
    _judge("newest 50, p95 of tantivy's", ours.p95 / theirs.p95, 0.6)
    if messages >= max(_SIZES):
        _judge("newest 50, p99 of tantivy's", ours.p99 / theirs.p99, 0.5)
    _judge("with total, p95 of tantivy's", total.percentiles("mailwarrant").p95 / total.percentiles("tantivy").p95, 2.5)


def _say_growth(newest: dict[int, Asked]) -> None:
    smallest, largest = min(newest), max(newest)
    if smallest == largest:
        return
    _say(f"\nfrom {smallest:,} to {largest:,}")
    few, many = newest[smallest], newest[largest]
    _judge("growth of the median", many.percentiles("mailwarrant").p50 / few.percentiles("mailwarrant").p50, 3)
    _judge("growth of phrases", many.of_kind("mailwarrant", "phrase") / few.of_kind("mailwarrant", "phrase"), 20)


def _say_sizes(ours: Ours, mail: Mail) -> None:
    with ours.store.snapshot(ACCOUNT) as snapshot:
        octets = int(snapshot.connection.execute("SELECT sum(length(block)) FROM search_data").get)
        page = snapshot.connection.execute("SELECT id FROM emails WHERE visible ORDER BY key DESC LIMIT ?", (PAGE,))
        ids = [str(email_id) for (email_id,) in page]
        started = time.thread_time()
        email_get(snapshot, ids, fetch_text=True)
        took = time.thread_time() - started
    text = sum(len(letter.body) + len(letter.subject) for letter in mail.letters())
    _judge("search table, of the text", octets / text, 1)
    _say(f"  Email/get of {PAGE} with text: {took * _MILLISECONDS:.2f} ms of CPU")


async def _served(folder: Path, size: int) -> None:
    _say(f"\nover HTTP, {size:,} messages")
    arguments: dict[str, JSON] = {"filter": {"text": word(_COMMON_RANK)}, "limit": PAGE}
    async with query_served.serving(folder) as served:
        body = query_served.calls(arguments)
        rate, shares = await query_served.beside_raw(served, body)
        _say(f"  Email/query and Email/get of {PAGE} at c={query_served.CONNECTIONS}: {rate:,.0f} a second")
        _judge("of a raw ASGI endpoint's rate", median(shares), 0.12, at_least=True)
        (query,) = await query_served.seconds_of(served, [query_served.query_alone(arguments)], 100)
        _say(f"  Email/query without what Core/echo takes: {query * _MILLISECONDS:.2f} ms")
        crowd = await query_served.many_agents(served, body)
        _say(f"  {query_served.AGENTS} agents at once: {crowd.answers} answers, {crowd.errors} errors")
        _judge("p99 of p50, a hundred agents", crowd.p99 / crowd.p50, 10)


def _fill_store(folder: Path, mail: Mail) -> float:
    folder.mkdir()
    return query_store.fill(folder, mail)


def _place(folder: Path, engine: str, messages: int) -> Path:
    return folder / f"{engine}-{messages}"


def _judge(what: str, found: float, target: float, *, at_least: bool = False) -> None:
    is_met = found >= target if at_least else found <= target
    bound = "at least" if at_least else "at most"
    _say(f"  {what:34} {found:7.3f}   {bound} {target:.3f}: {'met' if is_met else 'MISSED'}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
