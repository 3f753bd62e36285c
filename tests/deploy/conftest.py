"""The installation that the doctor's tests look at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.deploy.doctor_world import World, installed_tree

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A right one, with OS users of its own; whoever plants a mistake takes it back."""
    if os.geteuid() != 0:
        pytest.fail("this test makes OS users: run it as root (sudo make test)")
    with installed_tree() as made:
        yield made
