"""Search beside tantivy and notmuch, and the door beside a raw ASGI endpoint: `make bench-query`.

`python -m tests.bench.query --folder F [--rounds N] [SIZE ...]`; without sizes 10,000 and 100,000. What was filled lies
in the folder and is used again. One engine answers all questions, then the next, round by round: each has its own mail
at hand, as in use. A question counts with its median CPU time: the machine's other work is no part of that. Prints
Markdown: figures, ratios, and whether each target is met; docs/query-bench.md holds what came out.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from shared.message import JSON
from tests.agent_reader.mirrored import ACCOUNT
from tests.bench import query_rows, query_served, query_store
from tests.bench.query_engines import PAGE, Engine, Notmuch, Ours, Tantivy
from tests.bench.query_mail import Mail, word
from tests.bench.query_questions import Question, questions

_SIZES: Final = (10_000, 100_000)
_LARGEST: Final = 1_000_000
# It takes an hour and more for a million.
_MOST_FOR_NOTMUCH: Final = 100_000
_MOST_AS_SYNC_WRITES: Final = 100_000

_ROUNDS: Final = 5
_COMMON_RANK: Final = 20
_MILLISECONDS: Final = 1_000

# The search table alone, and the whole way of a message, are filled with so many to be timed.
_FILLED_ALONE: Final = 10_000
_READ_WHOLE: Final = 1_000


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

    def __str__(self) -> str:
        return f"{self.p50:.3f} / {self.p95:.3f} / {self.p99:.3f}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one size, one way of asking: seconds by engine and question."""

    questions: Sequence[Question]
    seconds: dict[str, list[float]]
    differ: int

    def percentiles(self, engine: str) -> Percentiles:
        return Percentiles.of(self.seconds[engine])

    def of_kind(self, engine: str, kind: str) -> float:
        pairs = zip(self.questions, self.seconds[engine], strict=True)
        return median(seconds for question, seconds in pairs if question.kind == kind) * _MILLISECONDS


@dataclass(frozen=True, slots=True)
class OfSize:
    """What came of one size."""

    newest: Asked
    total: Asked


def main() -> None:
    """Fill what is missing, ask, and print."""
    parser = argparse.ArgumentParser(prog="tests.bench.query")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("sizes", type=int, nargs="*", default=_SIZES)
    asked = parser.parse_args()
    found = {size: _one_size(asked.folder, Mail(size), asked.rounds) for size in sorted(asked.sizes)}
    _say_growth(found)
    _say_filling(asked.folder)
    asyncio.run(_served(_place(asked.folder, "mailwarrant", min(found)), min(found)))


def _one_size(folder: Path, mail: Mail, rounds: int) -> OfSize:
    _say(f"\n## {mail.messages:,} messages, p50 / p95 / p99 in ms\n")
    with_notmuch = mail.messages <= _MOST_FOR_NOTMUCH
    fill_store = _fill_store if mail.messages <= _MOST_AS_SYNC_WRITES else _fill_rows
    fillers: dict[str, Callable[[Path, Mail], float]] = {"mailwarrant": fill_store, "tantivy": Tantivy.fill}
    if with_notmuch:
        fillers["notmuch"] = Notmuch.fill
    for name, fill in fillers.items():
        _fill_if_missing(_place(folder, name, mail.messages), mail, fill)
    ours = Ours(_place(folder, "mailwarrant", mail.messages))
    engines: list[Engine] = [ours, Tantivy(_place(folder, "tantivy", mail.messages))]
    if with_notmuch:
        engines.append(Notmuch(_place(folder, "notmuch", mail.messages)))
    newest = _ask(engines, mail, rounds, lambda engine: engine.newest)
    total = _ask(engines, mail, rounds, lambda engine: engine.total)
    _say_figures(newest, total, [engine.name for engine in engines])
    _say_targets(newest, total, mail.messages)
    _say_size(ours, mail)
    ours.store.close()
    return OfSize(newest, total)


def _ask(
    engines: Sequence[Engine], mail: Mail, rounds: int, way: Callable[[Engine], Callable[[Question], int]]
) -> Asked:
    asked = questions(mail)
    taken: dict[str, list[list[float]]] = {engine.name: [[] for _ in asked] for engine in engines}
    answers: list[set[int]] = [set() for _ in asked]
    for number in range(rounds + 1):
        for engine in engines:
            ask = way(engine)
            for place, question in enumerate(asked):
                started = time.thread_time()
                answer = ask(question)
                took = time.thread_time() - started
                answers[place].add(answer)
                # The first round warms the caches.
                if number:
                    taken[engine.name][place].append(took)
    differ = sum(len(each) > 1 and not question.by_thread for each, question in zip(answers, asked, strict=True))
    return Asked(asked, {name: list(map(median, each)) for name, each in taken.items()}, differ)


def _say_figures(newest: Asked, total: Asked, engines: Sequence[str]) -> None:
    _say("| engine | newest 50 | newest 50 and total |\n|---|---|---|")
    for name in engines:
        _say(f"| {name} | {newest.percentiles(name)} | {total.percentiles(name)} |")
    _say(
        f"\nQuestions answered in different numbers: {newest.differ} and {total.differ} of {len(newest.questions)}, "
        "collapsed ones aside. Medians by kind, newest 50; with total:\n"
    )
    _say(f"| kind | {' | '.join(engines)} |\n|---|{'---|' * len(engines)}")
    for kind in dict.fromkeys(question.kind for question in newest.questions):
        cells = (f"{newest.of_kind(name, kind):.3f}; {total.of_kind(name, kind):.3f}" for name in engines)
        _say(f"| {kind} | {' | '.join(cells)} |")


def _say_targets(newest: Asked, total: Asked, messages: int) -> None:
    _begin_targets()
    ours, theirs = newest.percentiles("mailwarrant"), newest.percentiles("tantivy")
    if "notmuch" in newest.seconds:
        slow = newest.percentiles("notmuch")
        _judge("newest 50, p50 of notmuch's", ours.p50 / slow.p50, 1 / 10)
        _judge("newest 50, p95 of notmuch's", ours.p95 / slow.p95, 1 / 15)
    _judge("newest 50, p95 of tantivy's", ours.p95 / theirs.p95, 0.6)
    if messages >= _LARGEST:
        _judge("newest 50, p99 of tantivy's", ours.p99 / theirs.p99, 0.5)
    with_total = total.percentiles("mailwarrant"), total.percentiles("tantivy")
    _judge("with total, p95 of tantivy's", with_total[0].p95 / with_total[1].p95, 2.5)


def _say_growth(found: dict[int, OfSize]) -> None:
    smallest, largest = min(found), max(found)
    if smallest == largest:
        return
    _say(f"\n## From {smallest:,} to {largest:,}")
    _begin_targets()
    few, many, ours = found[smallest], found[largest], "mailwarrant"
    _judge("growth of the median", many.newest.percentiles(ours).p50 / few.newest.percentiles(ours).p50, 3)
    _judge("growth of phrases", many.newest.of_kind(ours, "phrase") / few.newest.of_kind(ours, "phrase"), 20)
    grown = many.total.percentiles(ours).p50 / few.total.percentiles(ours).p50
    _judge("growth of totals, of the messages'", grown * smallest / largest, 1)


def _say_size(ours: Ours, mail: Mail) -> None:
    with ours.store.snapshot(ACCOUNT) as snapshot:
        octets = int(snapshot.connection.execute("SELECT sum(length(block)) FROM search_data").get)
    text = sum(len(letter.body) + len(letter.subject) for letter in mail.letters())
    _judge("search table, of the text (subject and body)", octets / text, 1)


def _say_filling(folder: Path) -> None:
    """Each engine alone with the same mail, one after the other, in one run: rates of filling compare."""
    _say("\n## Filling, messages a second of CPU\n\n| what | |\n|---|---|")
    alone, read = Mail(_FILLED_ALONE), Mail(_READ_WHOLE)
    rates = {
        "search table alone": _rate(folder, alone, query_store.fill_search_table),
        "tantivy": _rate(folder, alone, Tantivy.fill),
        "a message's whole way, read and stored": _rate(folder, read, _fill_reading),
        "notmuch, from files": _rate(folder, read, Notmuch.fill),
    }
    for name, rate in rates.items():
        _say(f"| {name} | {rate:,.0f} |")
    _begin_targets()
    _judge("search table, of tantivy's rate", rates["search table alone"] / rates["tantivy"], 0.5, at_least=True)
    whole = rates["a message's whole way, read and stored"]
    _judge("whole way, of notmuch's rate", whole / rates["notmuch, from files"], 10, at_least=True)


def _rate(folder: Path, mail: Mail, fill: Callable[[Path, Mail], float]) -> float:
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        return mail.messages / fill(place / "filled", mail)
    finally:
        shutil.rmtree(place)


async def _served(folder: Path, size: int) -> None:
    _say(f"\n## Over HTTP, {size:,} messages\n")
    arguments: dict[str, JSON] = {"filter": {"text": word(_COMMON_RANK)}, "limit": PAGE}
    async with query_served.serving(folder) as served:
        body = query_served.calls(arguments)
        rate, shares = await query_served.beside_raw(served, body)
        _say(f"Email/query and Email/get of {PAGE} at c={query_served.CONNECTIONS}: {rate:,.0f} a second.")
        (query,) = await query_served.seconds_of(served, [query_served.query_alone(arguments)], 100)
        _say(f"Email/query without what Core/echo takes: {query * _MILLISECONDS:.2f} ms.")
        crowd = await query_served.many_agents(served, body)
        _say(f"{query_served.AGENTS} agents at once: {crowd.answers} answers, {crowd.errors} errors.")
        _begin_targets()
        _judge("of a raw ASGI endpoint's rate", median(shares), 0.12, at_least=True)
        _judge("p99 of p50, a hundred agents", crowd.p99 / crowd.p50, 10)


def _fill_store(folder: Path, mail: Mail) -> float:
    folder.mkdir()
    return query_store.fill(folder, mail)


def _fill_rows(folder: Path, mail: Mail) -> float:
    folder.mkdir()
    return query_rows.fill(folder, mail)


def _fill_reading(folder: Path, mail: Mail) -> float:
    folder.mkdir()
    return query_store.fill(folder, mail, reads=True)


def _fill_if_missing(place: Path, mail: Mail, fill: Callable[[Path, Mail], float]) -> None:
    if place.exists():
        return
    # What was begun and not ended is no filled place.
    begun = place.with_name(f"{place.name}-begun")
    shutil.rmtree(begun, ignore_errors=True)
    fill(begun, mail)
    begun.rename(place)


def _place(folder: Path, engine: str, messages: int) -> Path:
    return folder / f"{engine}-{messages}"


def _begin_targets() -> None:
    _say("\n| target | found | bound | |\n|---|---|---|---|")


def _judge(what: str, found: float, target: float, *, at_least: bool = False) -> None:
    is_met = found >= target if at_least else found <= target
    bound = "at least" if at_least else "at most"
    _say(f"| {what} | {found:.3f} | {bound} {target:.3g} | {'met' if is_met else 'missed'} |")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
