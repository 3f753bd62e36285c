"""What every test may ask for."""

from __future__ import annotations

import os
import tempfile
from typing import Final

import pytest
from hypothesis import settings

pytest_plugins = ["tests.servers.fixtures", "tests.servers.browser", "tests.servers.desk_fixtures"]

# How long an example takes says more of the machine than of the code.
settings.register_profile("mailwarrant", deadline=None)
settings.load_profile("mailwarrant")

# These start whole programs and take longest: they come first, so that no worker is left alone with one at the end.
_FIRST = (
    "tests/end_to_end/test_kills.py",
    "tests/end_to_end/",
    "tests/change_executor/breaking/",
    "tests/demo/",
    "tests/change_executor/test_serving.py",
    "tests/change_executor/review/",
    "tests/gullible/",
    "tests/agent_reader/mcp/",
    "tests/agent_reader/test_app",
    "tests/agent_reader/test_store_commands.py",
    "tests/agent_reader/test_sync_servers.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the order within a file, and of all others, stays."""
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    return next((place for place, start in enumerate(_FIRST) if item.nodeid.startswith(start)), len(_FIRST))


# Octets: a Unix socket's path has 107 at most, pytest-of-NAME/pytest-N/popen-gwN/TEST/reader/link/reader.sock 91.
_DEEPEST_TEMPORARY_FOLDER: Final = 16


# Everything is on loopback, where a machine's proxy leads nowhere; programs that the tests start inherit this.
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def pytest_configure(config: pytest.Config) -> None:
    for name in _PROXIES:
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    if len(os.fsencode(tempfile.gettempdir())) > _DEEPEST_TEMPORARY_FOLDER:
        # For this process, those of a parallel run, and every program that is started.
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"
    config.addinivalue_line("markers", "statement(id, ...): statements of tests/agent_reader/jmap/manifest.toml")
