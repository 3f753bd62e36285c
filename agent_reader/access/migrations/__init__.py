"""The versions of the access file's tables; run by `agent_reader.access.database` when it is opened, never by hand."""

from typing import Final

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0002"
