"""What alembic runs: the versions that are missing, on the connection that was handed over, in its transaction."""

from alembic import context

from agent_reader.access.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
