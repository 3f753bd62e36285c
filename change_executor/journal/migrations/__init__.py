"""The versions of the journal's tables; run by `change_executor.journal.open` in one transaction, never by hand."""

from typing import Final

# The version that this code reads and writes; a test holds it to the last file of `versions`.
HEAD: Final = "0005"
