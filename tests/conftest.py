"""What every test may ask for."""

from __future__ import annotations

import pytest
from hypothesis import settings

pytest_plugins = ["tests.servers.fixtures", "tests.servers.browser", "tests.servers.desk_fixtures"]

# How long an example takes says more of the machine than of the code.
settings.register_profile("mailwarrant", deadline=None)
settings.load_profile("mailwarrant")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "statement(id, ...): statements of tests/agent_reader/jmap/manifest.toml")
