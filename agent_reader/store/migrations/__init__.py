"""The versions of the mirror's tables; run by `agent_reader.store.database` when a file is opened, never by hand."""

from typing import Final

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0009"
