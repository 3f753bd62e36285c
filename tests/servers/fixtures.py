"""Fixtures: a server of one's own per test, since starting one takes a fifth of a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.dovecot import Dovecot
from tests.servers.dovecot_config import ExecutorRights

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def dovecot() -> Iterator[Dovecot]:
    """The executor has `lrswite` on incoming and on the destinations: it can move back."""
    with Dovecot(ExecutorRights.WIDE) as server:
        yield server


@pytest.fixture
def narrow_dovecot() -> Iterator[Dovecot]:
    """The executor has `lrte` on incoming and `lrswi` on the destinations: it cannot move back."""
    with Dovecot(ExecutorRights.NARROW) as server:
        yield server
