"""What can be wrong with what is kept. Apart from `errors.py`, which knows IMAP: processes that read have it."""

from typing import Final


class MessageDamaged(Exception):  # noqa: N818 - names what was found
    """What the index keeps of a message is damaged. Retryable: it is read again from the mail server.

    `code`, `detail` and `fix` as in the others.
    """

    code: Final = "message_damaged"
    detail: Final = "What the index keeps of a message is damaged; it is being read again from the mail server."
    fix: Final = "Try again in a minute, or ask for fewer messages at once to have the others."

    def __init__(self) -> None:
        super().__init__(self.detail)
