"""What stands in a journal that somebody may have tampered with: read whatever it is, and told as letters."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from change_executor.journal.engine import driver_of


@contextmanager
def any_octets(connection: Connection) -> Iterator[None]:
    """Let texts that are no UTF-8 be read meanwhile, each octet of them as a lone surrogate (Python's surrogateescape).

    Otherwise one of them would end every look at the journal, at whatever else is wrong with it too.
    """
    driver = driver_of(connection)
    usual = driver.text_factory
    driver.text_factory = lambda octets: octets.decode("utf-8", "surrogateescape")
    try:
        yield
    finally:
        driver.text_factory = usual


def legible(text: str) -> str:
    """Return a text as a terminal may get it: what is no letter (a control, a mark of direction) is escaped."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)
