"""What a reader may say to the gate: before it has signed in, and afterwards. Nothing else is understood."""

import re
from types import MappingProxyType
from typing import Final

from shared.imap_guard import ATOM, QUOTED, VerbTable
from shared.reader_verbs import READER_TABLE

_STRING: Final = rb"(" + QUOTED + rb"|" + ATOM + rb")"
LOGIN_ARGUMENTS: Final = re.compile(_STRING + b" " + _STRING)
_NOTHING: Final = re.compile(b"")

# Answered by the gate itself.
FRONT_TABLE: Final = VerbTable(
    "gate, before login",
    MappingProxyType(
        {
            b"CAPABILITY": _NOTHING,
            b"NOOP": _NOTHING,
            b"LOGOUT": _NOTHING,
            b"LOGIN": LOGIN_ARGUMENTS,
            b"AUTHENTICATE": re.compile(b"PLAIN"),
        }
    ),
)

# Signing in is over, and it is the gate's: a second one would be somebody else's.
_OF_SIGNING_IN: Final = frozenset({b"STARTTLS", b"AUTHENTICATE", b"LOGIN"})

# Passed on to the mail server.
PASSED_TABLE: Final = VerbTable(
    "gate",
    MappingProxyType({verb: pattern for verb, pattern in READER_TABLE.arguments.items() if verb not in _OF_SIGNING_IN}),
)
