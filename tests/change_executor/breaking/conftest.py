"""The three servers, each with the way to move that it knows; those beside Dovecot where they are unpacked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.change_executor.breaking.rig import MailServer
from tests.change_executor.breaking.street import Street
from tests.servers.courier import Courier
from tests.servers.cyrus import Cyrus
from tests.servers.dovecot import Dovecot

if TYPE_CHECKING:
    from collections.abc import Iterator

# The long form tries all on all servers; `make executor-long`.
LONG = bool(os.environ.get("EXECUTOR_LONG"))

SERVERS: dict[str, type[Any]] = {"dovecot": Dovecot, "cyrus": Cyrus, "courier": Courier}


@pytest.fixture(scope="module", params=list(SERVERS))
def any_server(request: pytest.FixtureRequest) -> Iterator[MailServer]:
    with SERVERS[request.param]("wide") as server:
        yield server


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("wide") as server:
        yield server


def without_move(server: object) -> dict[str, Any]:
    """What a queue has to allow on a server without MOVE."""
    return {"without_move": "copy"} if isinstance(server, Courier) else {}


@pytest.fixture
def street(server: Dovecot) -> Iterator[Street]:
    opened = Street(server)
    yield opened
    opened.close()
