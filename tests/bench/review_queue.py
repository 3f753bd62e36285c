"""The review page with 10 and with 10,000 proposals that wait: the first page, a search, a group, over HTTP.

Run as `python -m tests.bench.review_queue`. No page of 10,000 may take three times that of ten.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.servers.desk import ReviewPage, reading

PATHS: Final = ("/", "/?q=nothing-like-it", "/?sender=ada&to=processed", "/?group=sender", "/log", "/status", "/agents")
FEW: Final = 10
MANY: Final = 10_000
MAX_RATIO: Final = 3.0
_TIMES: Final = 9


def milliseconds(count: int) -> dict[str, float]:
    """The median time of each page with so many proposals, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        page = ReviewPage(Path(folder))
        try:
            page.rows.person()
            _fill(page, count)
            client = page.signed_in()
            return {path: statistics.median(_time(client.get, path) for _ in range(_TIMES)) for path in PATHS}
        finally:
            page.close()


def _fill(page: ReviewPage, count: int) -> None:
    # Eight writers share each wait for the disk; one after the other would take minutes.
    def one(number: int) -> None:
        page.rows.proposal(reading(f"Subject {number}", "Some text of a message. " * 40), "because")

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(one, range(count)))


def _time(get: object, path: str) -> float:
    assert callable(get)
    began = time.perf_counter()
    answer = get(path)
    assert answer.status_code == 200, path
    return (time.perf_counter() - began) * 1000


def main() -> None:
    few, many = milliseconds(FEW), milliseconds(MANY)
    for path in PATHS:
        sys.stdout.write(f"{path:28} {few[path]:8.1f} ms {many[path]:8.1f} ms  x {many[path] / few[path]:.1f}\n")
    if any(many[path] > MAX_RATIO * few[path] for path in PATHS):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
