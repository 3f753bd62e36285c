"""What a searchable mirror costs at the least in this stack: `email` alone, and FTS5 alone, each in a process.

`python -m tests.bench.sync_floor KIND MESSAGES` measures the newest messages of a mailbox of so many: `email` takes
them apart (each header, each text), `email-legacy` as well by the older policy, which decodes no header, and `fts5`
puts their words, folded before, into a search table like the store's. Prints how many and their seconds of CPU, as
JSON; making the messages is not counted.
"""

import email
import email.policy
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import apsw

from agent_reader.store import database, search, tokens
from agent_reader.store.reading import Reading, read
from agent_reader.sync.mirror import FetchedMessage, MessageState
from tests.bench.large_mailbox import LargeMailbox
from tests.bench.sync_rivals import BATCH

# Each costs the same, but for the search table, which costs the more the larger it is.
_MOST_PARSED: Final = 4_000
_MOST_INDEXED: Final = 20_000


def parse_by_email(mailbox: LargeMailbox, policy: Any) -> tuple[int, float]:
    """Have `email` take messages apart; how many, and the seconds of CPU."""
    count, spent = 0, 0.0
    for octets in islice(_newest_first(mailbox), _MOST_PARSED):
        count += 1
        spent += _cpu_seconds(lambda octets=octets: _parts(octets, policy))  # type: ignore[misc]  # bound at once
    return count, spent


def index_by_fts5(mailbox: LargeMailbox) -> tuple[int, float]:
    """Have FTS5 index words that are folded already, a batch in a transaction; how many, and the seconds of CPU."""
    count, spent = 0, 0.0
    readings = enumerate(islice(_readings(mailbox), _MOST_INDEXED))
    with tempfile.TemporaryDirectory(prefix="mw-bench-") as folder, closing(_search_table(Path(folder))) as table:
        while batch := [(place, _tokens(each), each.words) for place, each in islice(readings, BATCH)]:
            count += len(batch)
            spent += _cpu_seconds(lambda batch=batch: _put(table, batch))  # type: ignore[misc]  # bound at once
    return count, spent


def _parts(octets: bytes, policy: Any) -> int:
    message: Any = email.message_from_bytes(octets, policy=policy)
    seen = sum(len(str(value)) for value in message.values())
    for part in message.walk():
        if part.get_content_maintype() == "text":
            seen += len(part.get_content()) if hasattr(part, "get_content") else len(_legacy_text(part))
    return seen


def _legacy_text(part: Any) -> str:
    octets: bytes = part.get_payload(decode=True)
    return octets.decode(part.get_content_charset("utf-8"), "replace")


def _search_table(folder: Path) -> apsw.Connection:
    path = folder / "index.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(search._CREATE)
    connection.execute("INSERT INTO search (search, rank) VALUES ('pgsz', ?)", (search._PAGE_OCTETS,))
    connection.close()
    return database.connect(path)


def _put(table: apsw.Connection, batch: list[tuple[int, str, tuple[str, ...]]]) -> None:
    with table:
        for place, token_text, words in batch:
            search.put(table, place, token_text, words)


def _tokens(reading: Reading) -> str:
    senders = (reading.sender, reading.sender_domain)
    return tokens.of_email([1], [], senders, has_attachment=reading.has_attachment, signs_in=reading.signs_in)


def _newest_first(mailbox: LargeMailbox) -> Iterator[bytes]:
    return (mailbox.octets(number) for number in reversed(range(mailbox.messages)))


def _readings(mailbox: LargeMailbox) -> Iterator[Reading]:
    state = MessageState(frozenset(), None)
    for uid, octets in enumerate(_newest_first(mailbox), 1):
        yield read(FetchedMessage(uid, state, mailbox.newest, len(octets), octets, b""), "F1", 1)


def _cpu_seconds(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def _main() -> None:
    kind, messages = sys.argv[1], int(sys.argv[2])
    mailbox = LargeMailbox(messages, datetime.now(UTC))
    match kind:
        case "email":
            measured = parse_by_email(mailbox, email.policy.default)
        case "email-legacy":
            measured = parse_by_email(mailbox, email.policy.compat32)
        case _:
            measured = index_by_fts5(mailbox)
    sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    _main()
