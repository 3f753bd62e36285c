"""A decision that is pressed while the executor restarts: on a socket that the service manager holds, it waits."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from change_executor.journal.journal import read_proposal
from change_executor.journal.open import open_journal
from change_executor.review.app import make_app
from change_executor.review.passwords import Passwords
from shared.proposal import State
from tests.servers.desk import CHEAP, PASSWORD, PERSON, Clock, Rows, journal_for, reading, settings_for
from tests.servers.page import Served

if TYPE_CHECKING:
    from pathlib import Path

    from change_executor.config import ExecutorSettings
    from change_executor.journal.journal import Journal


class Executor:
    """The page as a process of its own would make it: anew each time, on the socket that stays."""

    def __init__(self, listener: socket.socket, settings: ExecutorSettings, journal: Journal, clock: Clock) -> None:
        self.journal = journal
        self._served = Served(listener.dup())
        self._served.serve(
            make_app(
                settings,
                journal,
                clock=clock,
                random_octets=secrets.token_bytes,
                separated=True,
                passwords=Passwords(CHEAP),
            )
        )

    def stop(self) -> None:
        self._served.close()
        self.journal.close()


def test_a_decision_while_the_executor_restarts_is_taken_when_it_is_back(tmp_path: Path, browser_page: Page) -> None:
    page, clock = browser_page, Clock()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = settings_for(tmp_path, listener.getsockname()[1])
        journal = journal_for(settings, clock)
        rows = Rows(journal, settings, clock)
        rows.person()
        proposal = rows.proposal(reading("Patience"))
        url = f"http://localhost:{listener.getsockname()[1]}"
        executor = Executor(listener, settings, journal, clock)
        try:
            page.goto(f"{url}/sign-in?next=/p/{proposal.id}")
            page.get_by_label("Name").fill(PERSON)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            approve = page.get_by_role("button", name="Approve the move")
            expect(approve).to_be_visible()
            page.wait_for_load_state()
        finally:
            executor.stop()
        with page.expect_request(f"**/p/{proposal.id}/approve"):
            approve.click(no_wait_after=True)
        executor = Executor(listener, settings, open_journal(settings.journal.url, clock), clock)
        try:
            expect(page.get_by_text("Approved. The executor moves it now.")).to_be_visible()
            with executor.journal.reading() as connection:
                found = read_proposal(connection, proposal.id)
            assert (State.APPROVED, PERSON) == (found.state, found.decided_by)
            # The page goes on as if nothing had been: live again, and signed in.
            Rows(executor.journal, settings, clock, iter([9])).proposal(reading("Next"))
            expect(page.get_by_role("link", name="Next")).to_be_visible()
        finally:
            executor.stop()
