"""Whether a message would sign somebody in: a one-time code, a password reset, a sign-in link."""

import re
from typing import Final

_CODE: Final = re.compile(r"\b(?:verification|one[- ]time|security|login) (?:code|password|passcode)\b", re.IGNORECASE)


def is_sign_in_mail(subject: str, text: str) -> bool:
    """Whether a message holds what signs somebody in."""
    return _CODE.search(subject) is not None and re.search(r"\d{4,8}", text) is not None
