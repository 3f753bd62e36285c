"""A person at the page inside the container: `python -m tests.system.person UID WORD...`, in its network namespace.

Imports first, then becomes the user: the container's people cannot read this machine's Python.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Final

import httpx

from deploy.demo.person import Person

URL: Final = "http://localhost:8622"
PASSWORD: Final = "correct horse battery"
PATIENCE: Final = 90.0


def main() -> None:
    """`link LINK`: the first password. `decide PROPOSAL ACTION`: waits until the page offers it."""
    uid, what, *words = sys.argv[1:]
    # What is imported at the first request must be there before the user who could not read it.
    with contextlib.suppress(httpx.ConnectError):
        httpx.post("http://localhost:9/", data={"a": "b"})
    with Person(URL) as person:
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
        if what == "link":
            person.sign_in_by_link(words[0], PASSWORD)
        else:
            person.sign_in("ada", PASSWORD)
            _decide(person, *words)


def _decide(person: Person, proposal_id: str, action: str) -> None:
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while (page := person.offers(proposal_id, action)) is None:
        assert time.monotonic() < deadline, f"the page never offered {action}"
        pause.wait(0.3)
    person.submit(page, f"/p/{proposal_id}/{action}", {})


if __name__ == "__main__":
    main()
