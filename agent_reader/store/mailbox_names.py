"""What a Mailbox is called: its name on the mail server, made fit for every reader (RFC 8621 §2)."""

import re
import unicodedata
from typing import Final

from shared import ijson

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def net_unicode(name: str) -> str:
    """Return a name, or a path of names, as Net-Unicode (RFC 5198 §2): NFC, with U+FFFD for what it must not hold.

    Modified UTF-7 has a spelling for every control character and noncharacter, and mail servers take it.
    """
    interchanged = ijson.without_noncharacters(name.encode("utf-8", "replace")).decode()
    return _CONTROLS.sub("\ufffd", unicodedata.normalize("NFC", interchanged))
