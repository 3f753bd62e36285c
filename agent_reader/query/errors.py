"""The one way in which a question is refused: the asker's mistake, in JMAP's terms.

    QueryRefused   invalidArguments, unsupportedFilter, unsupportedSort, anchorNotFound (RFC 8620 §3.6.2, §5.5)

Mail and store bring no errors of their own: what is on disk answers, or the file is broken and the call fails whole.
"""


class QueryRefused(Exception):  # noqa: N818 - RFC 8620 calls it a method-level error; it is a refusal
    """A method-level error of RFC 8620 §3.6.2; `type` is its wire code, `arguments` names what was wrong.

    `description` says what to do instead, and quotes nothing that came from mail.
    """

    def __init__(self, type: str, description: str, arguments: tuple[str, ...] = ()) -> None:  # noqa: A002 - the RFC's name
        super().__init__(f"{type}: {description}")
        self.type = type
        self.description = description
        self.arguments = arguments


def invalid(argument: str, description: str) -> QueryRefused:
    """Return invalidArguments for one argument."""
    return QueryRefused("invalidArguments", f"{argument}: {description}", (argument,))
