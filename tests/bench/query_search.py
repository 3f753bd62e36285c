"""How fast messages come into the store, and how fast questions are answered from it.

`python -m tests.bench.query_search [MESSAGES]`, 10,000 by default. Synthetic mail with words by Zipf's law; seconds of
this process's CPU for the filling, milliseconds of wall clock (p50 / p95) for questions.
"""

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from agent_reader.store.database import account_file
from agent_reader.sync.mirror import MessageState
from shared.message import JSON
from tests.agent_reader import synced
from tests.agent_reader.email_get import email_get
from tests.agent_reader.mirrored import ACCOUNT, START, Mirrored, fetched, id_of, letter, mirrored

_DEFAULT_MESSAGES: Final = 10_000
_BATCH: Final = 200
_ROUNDS: Final = 20
_WORDS_IN_BODY: Final = 150
_VOCABULARY: Final = 30_000
_CHANGED_FLAGS: Final = 2_000


def measure(messages: int, folder: Path) -> None:
    """Fill a store and ask it; prints a line for each figure."""
    letters = _letters(messages)
    with mirrored(folder) as account:
        account.begin("INBOX", "Archive")
        _fill(account, letters)
        handle = account.handle("INBOX")
        uids = sorted(account.mirror.states(handle))[:_CHANGED_FLAGS]
        started = time.process_time()
        synced.change(
            account.mirror, handle, {uid: MessageState(frozenset({"\\Seen", "\\Flagged"}), 2) for uid in uids}
        )
        _say(f"{'one flag, in a batch':28} {(time.process_time() - started) / len(uids) * 1000:8.2f} ms")
        _ask(account, letters)
        account.store.close()
        size = account_file(folder, ACCOUNT).stat().st_size
        _say(f"{'file':28} {size / 1e6:8.1f} MB for {sum(map(len, letters)) / 1e6:.1f} MB of mail")


def _letters(messages: int) -> list[bytes]:
    chance = random.Random(1)
    words = [f"w{min(int(chance.paretovariate(0.5)), _VOCABULARY)}" for _ in range(200_000)]
    return [
        letter(
            " ".join(chance.choices(words, k=_WORDS_IN_BODY)),
            subject=f"About {words[number % 999]} {number % 3000}",
            sender=f"Person {number % 500} <p{number % 500}@example.org>",
            headers={"Message-ID": f"<{number}@x>", "References": f"<{number - 1}@x>" if number % 4 else ""},
        )
        for number in range(messages)
    ]


def _fill(account: Mirrored, letters: list[bytes]) -> None:
    started = time.process_time()
    for start in range(0, len(letters), _BATCH):
        batch = (
            fetched(uid, letters[uid - 1], flags=["\\Seen"] if uid % 3 else [], at=START + timedelta(minutes=uid))
            for uid in range(start + 1, min(len(letters), start + _BATCH) + 1)
        )
        account.add("INBOX" if start // _BATCH % 3 else "Archive", *batch)
    _say(f"{'taken in':28} {len(letters) / (time.process_time() - started):8.0f} messages/s of CPU")


def _ask(account: Mirrored, letters: list[bytes]) -> None:
    inbox: JSON = account.mailbox_id("INBOX")
    page = account.query(limit=50).ids

    def get(*properties: str) -> None:
        with account.store.snapshot(ACCOUNT) as snapshot:
            email_get(snapshot, page, properties=properties or None, fetch_text=not properties)

    questions: dict[str, Callable[[], object]] = {
        "newest 50": lambda: account.query(limit=50),
        "newest 50 and total": lambda: account.query(limit=50, calculateTotal=True),
        "rare word": lambda: account.query(filter={"text": "w9973"}, limit=50),
        "common word": lambda: account.query(filter={"text": "w2"}, limit=50),
        "common word and total": lambda: account.query(filter={"text": "w2"}, limit=50, calculateTotal=True),
        "phrase": lambda: account.query(filter={"text": '"w1 w2 w3"'}, limit=50),
        "from and word": lambda: account.query(filter={"from": "p7", "text": "w2"}, limit=50),
        "mailbox": lambda: account.query(filter={"inMailbox": inbox}, limit=50),
        "mailbox, unread, word": lambda: account.query(
            filter={"inMailbox": inbox, "notKeyword": "$seen", "text": "w2"}, limit=50
        ),
        "dates and word": lambda: account.query(filter={"before": "2026-01-03T00:00:00Z", "text": "w2"}, limit=50),
        "two words": lambda: account.query(filter={"text": "w2 w3"}, limit=50),
        "NOT": lambda: account.query(
            filter={"operator": "NOT", "conditions": [{"text": "w2"}, {"from": "p7"}]}, limit=50
        ),
        "some of the thread unread": lambda: account.query(filter={"noneInThreadHaveKeyword": "$seen"}, limit=50),
        "a header that many have": lambda: account.query(filter={"header": ["References"]}, limit=50),
        "a header that one has": lambda: account.query(filter={"header": ["Message-ID", "<7@x>"]}, limit=50),
        "flagged first": lambda: account.query(
            sort=[{"property": "hasKeyword", "keyword": "$flagged", "isAscending": False}], limit=50
        ),
        "collapsed and total": lambda: account.query(collapseThreads=True, calculateTotal=True, limit=50),
        "by subject": lambda: account.query(sort=[{"property": "subject"}], limit=50),
        "anchor at the far end": lambda: account.query(anchor=id_of(letters[0]), limit=50),
        "get 50, a list's properties": lambda: get("subject", "from", "receivedAt", "preview", "keywords"),
        "get 50, default and text": get,
        "mailboxes and counts": lambda: account.mailbox("INBOX"),
    }
    for name, question in questions.items():
        _time(name, question)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _time(name: str, question: Callable[[], object]) -> None:
    taken = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        question()
        taken.append((time.perf_counter() - started) * 1000)
    taken.sort()
    _say(f"{name:28} {taken[_ROUNDS // 2]:8.2f} / {taken[_ROUNDS * 95 // 100]:.2f} ms")


if __name__ == "__main__":
    chosen = Path(tempfile.mkdtemp())
    try:
        measure(int(sys.argv[1]) if len(sys.argv) > 1 else _DEFAULT_MESSAGES, chosen)
    finally:
        shutil.rmtree(chosen)
