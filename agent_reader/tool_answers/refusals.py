"""What a tool says when it cannot answer: a code, what is wrong, and what to do next, in our words alone.

Arguments come from a model that reads mail, so they may be a stranger's words: no refusal repeats one.
"""


class ToolRefused(Exception):  # noqa: N818 - names what the tool did
    """A tool's refusal; `code` is for programs and tests, the text is for the model."""

    def __init__(self, code: str, detail: str, fix: str) -> None:
        super().__init__(code)
        self.code, self.detail, self.fix = code, detail, fix

    def text(self) -> str:
        """Return the refusal on one line."""
        return f"{self.code}: {self.detail} {self.fix}"


def unknown_tool(names: tuple[str, ...]) -> ToolRefused:
    """Refuse a tool that is not in this token's list."""
    return ToolRefused(
        "unknown_tool",
        "There is no such tool for this token.",
        f"Use one of {', '.join(names)}. Nothing here changes, sends or deletes mail.",
    )


def unknown_argument(tool: str, names: tuple[str, ...]) -> ToolRefused:
    """Refuse an argument that the tool does not have: passed over, it would mislead."""
    has = f"has {', '.join(names)}" if names else "takes no arguments"
    return ToolRefused("unknown_argument", f"{tool} {has}, and no other argument.", "Call it again with these.")


def bad_argument(name: str, must: str) -> ToolRefused:
    """Refuse a value; `must` says what it has to be."""
    return ToolRefused("bad_argument", f"`{name}` must be {must}.", "Mend it and call again.")


def missing_argument(name: str, what: str) -> ToolRefused:
    """Refuse a call without an argument that it needs."""
    return ToolRefused("missing_argument", f"`{name}` is missing: {what}.", "Add it and call again.")
