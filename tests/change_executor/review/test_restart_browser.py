"""The executor restarts under an open page: on a socket that the service manager holds, and with nobody there."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from change_executor.journal.open import open_journal
from change_executor.review.app import make_app
from change_executor.review.case import read_case
from change_executor.review.passwords import Passwords
from shared.proposal import State
from tests.servers.desk import CHEAP, PASSWORD, PERSON, Clock, Rows, journal_for, reading, settings_for
from tests.servers.page import Served
from tests.servers.ports import free_port

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


@pytest.mark.parametrize("held", [True, False], ids=["the socket is held", "nobody listens meanwhile"])
def test_what_is_pressed_while_the_executor_restarts_is_done_when_it_is_back_and_nothing_is_lost(
    tmp_path: Path, browser_page: Page, held: bool
) -> None:
    page, clock = browser_page, Clock()
    # None of those that the kernel gives out: while nobody listens, another program may get such a one.
    address = ("127.0.0.1", free_port())
    listener = socket.create_server(address)
    settings = settings_for(tmp_path, address[1])
    rows = Rows(journal_for(settings, clock), settings, clock)
    rows.person()
    proposal, url = rows.proposal(reading("Patience")), f"http://localhost:{address[1]}"
    executor = Executor(listener, settings, rows.journal, clock)
    try:
        page.goto(f"{url}/sign-in?next=/p/{proposal.id}")
        page.get_by_label("Name").fill(PERSON)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Reason").fill("She still waits for")
    finally:
        executor.stop()
        if not held:
            listener.close()
    # Still there, still to be written in; a link is a way out that must not lead into an error page either.
    page.get_by_role("link", name="Queue", exact=True).click(no_wait_after=True)
    expect(page.get_by_text("The executor does not answer.")).to_be_visible()
    page.get_by_label("Reason").press_sequentially(" an answer")
    page.get_by_role("button", name="Reject", exact=True).click(no_wait_after=True)
    expect(page.get_by_label("Reason")).to_have_value("She still waits for an answer")
    assert f"{url}/p/{proposal.id}" == page.url
    if not held:
        listener = socket.create_server(address)
    executor = Executor(listener, settings, open_journal(settings.journal.url, clock), clock)
    try:
        expect(page.get_by_text("Rejected. Nothing was moved")).to_be_visible()
        with executor.journal.reading() as connection:
            case = read_case(connection, settings, proposal.id)
        assert (State.REJECTED, "She still waits for an answer") == (case.proposal.state, case.decision_reason)
        # The page goes on as if nothing had been: live again, and signed in.
        Rows(executor.journal, settings, clock, iter([9])).proposal(reading("Next"))
        expect(page.get_by_role("link", name="Next")).to_be_visible()
    finally:
        executor.stop()
        listener.close()


def test_an_open_queue_goes_on_by_itself_after_a_restart(tmp_path: Path, browser_page: Page) -> None:
    page, clock = browser_page, Clock()
    address = ("127.0.0.1", free_port())
    with socket.create_server(address) as listener:
        settings = settings_for(tmp_path, address[1])
        rows = Rows(journal_for(settings, clock), settings, clock)
        rows.person()
        secret = rows.link()
        executor = Executor(listener, settings, rows.journal, clock)
        try:
            page.goto(f"http://localhost:{address[1]}/link#{secret}")
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("link", name="Queue", exact=True).click()
            expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        finally:
            executor.stop()
    expect(page.get_by_text("The executor does not answer.")).to_be_visible()
    with socket.create_server(address) as listener:
        executor = Executor(listener, settings, open_journal(settings.journal.url, clock), clock)
        try:
            expect(page.get_by_text("The executor does not answer.")).to_be_hidden()
            Rows(executor.journal, settings, clock, iter([9])).proposal(reading("After it"))
            expect(page.get_by_role("link", name="After it")).to_be_visible()
        finally:
            executor.stop()
