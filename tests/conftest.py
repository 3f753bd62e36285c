"""What every test may ask for."""

from __future__ import annotations

pytest_plugins = ["tests.servers.fixtures", "tests.servers.browser", "tests.servers.desk_fixtures"]
