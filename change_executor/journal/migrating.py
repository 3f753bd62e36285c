"""The journal's tables brought to a revision, in the transaction of whoever asks: whole, or not at all."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from change_executor.journal import migrations

if TYPE_CHECKING:
    from alembic.config import Config

# alembic is imported where it runs: it costs a command line a third of a second, and most have nothing to migrate.


def revision_of(connection: Connection) -> str | None:
    """Return the revision that the tables are of, None where there are none."""
    known = connection.exec_driver_sql("SELECT 1 FROM sqlite_schema WHERE name = 'alembic_version'").first()
    if known is None:
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def upgrade(connection: Connection, now: datetime, to: str = migrations.HEAD) -> None:
    """Bring the tables to a revision, this code's. Raises `alembic.util.CommandError` for those of a newer one."""
    from alembic import command  # noqa: PLC0415 - see above

    command.upgrade(_config(connection, now), to)


def downgrade(connection: Connection, to: str, now: datetime) -> list[str]:
    """Take the tables back to an older revision, and return in words what was lost.

    Raises `shared.revisions.DowngradeRefused`; whoever began the transaction must take it back then.
    """
    from alembic import command  # noqa: PLC0415 - see above

    config = _config(connection, now)
    lost: list[str] = config.attributes["lost"]
    command.downgrade(config, to)
    return lost


def _config(connection: Connection, now: datetime) -> "Config":
    from alembic.config import Config  # noqa: PLC0415 - see above

    config = Config()
    # The option is expanded, so that a per cent sign in the path is written twice.
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.attributes |= {"connection": connection, "now": now, "lost": []}
    return config
