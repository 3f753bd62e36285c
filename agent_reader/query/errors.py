"""The one way in which a question is refused: the asker's mistake, in JMAP's terms.

    QueryRefused   invalidArguments, requestTooLarge, unsupportedFilter, unsupportedSort, anchorNotFound,
                   cannotCalculateChanges, tooManyChanges (RFC 8620 §3.6.2, §5)

Mail and store bring no errors of their own: what is on disk answers, or the file is broken and the call fails whole.
"""

from typing import Final


class QueryRefused(Exception):  # noqa: N818 - RFC 8620 calls it a method-level error; it is a refusal
    """A method-level error of RFC 8620 §3.6.2; `type` is its wire code, `arguments` names what was wrong.

    `description` says what to do instead, and quotes nothing that came from mail. `code` tells apart what RFC 8620 has
    one type for.
    """

    def __init__(
        self,
        type: str,  # noqa: A002 - the RFC's name
        description: str,
        arguments: tuple[str, ...] = (),
        code: str | None = None,
    ) -> None:
        super().__init__(f"{type}: {description}")
        self.type = type
        self.description = description
        self.arguments = arguments
        self.code = code


def invalid(argument: str, description: str) -> QueryRefused:
    """Return invalidArguments for one argument."""
    return QueryRefused("invalidArguments", f"{argument}: {description}", (argument,))


# The code of a refusal, and of a total that is left out, for want of time.
TIME_LIMIT: Final = "timeLimit"


def too_slow() -> QueryRefused:
    """Return the refusal of a search that took too long: RFC 8620 §5.5 has the asker simplify it."""
    return QueryRefused(
        "unsupportedFilter",
        "The search took too long and was ended; nothing was left out of an answer. Narrow it by a mailbox, dates or "
        "rarer words, or ask without `header` and without a total.",
        ("filter",),
        TIME_LIMIT,
    )


def too_large() -> QueryRefused:
    """Return the refusal of an answer that would not fit."""
    return QueryRefused(
        "requestTooLarge",
        "The answer would be too large. Ask for fewer ids or properties, give maxBodyValueBytes, or let maxTotalBytes "
        "of urn:x-mailwarrant:agent cut it to size.",
    )


def took_too_long() -> QueryRefused:
    """Return the refusal of messages that could not be read in time.

    RFC 8620 §5.1 has this type for more objects than a server will take in one call: what helps is to ask for fewer.
    """
    return QueryRefused(
        "requestTooLarge",
        "Reading these messages took too long and was ended; nothing was left out of an answer. Ask for fewer at once.",
        code=TIME_LIMIT,
    )
