"""Questions of a set-up, put to a person at a terminal or answered from a file; alike in both programs."""

import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from shared.settings import ConfigurationError

# Who mistypes so often wants to stop.
_TRIES: Final = 5


def at_terminal(answers: Path | None) -> "Dialogue":
    """Return the dialogue of a command: by the file of answers, or with the person at the terminal."""
    return Dialogue(load_answers(answers) if answers else {}, None if answers else _ask, _say)


def _ask(prompt: str) -> str:
    # On standard error, so that standard output holds the configuration alone.
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def write_configuration(output: str, text: str) -> None:
    """Write a configuration file that is not there yet, or to standard output (`-`). Raises `ConfigurationError`."""
    if output == "-":
        sys.stdout.write(text)
        return
    try:
        # Never over what is there: it may hold what a person wrote by hand.
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise ConfigurationError(
            output, f"cannot be written: {error.strerror}.", "Name a file that does not exist yet, or move it away."
        ) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def load_answers(path: Path) -> dict[str, Any]:
    """Read a TOML file of answers by key. Raises `ConfigurationError`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(path), f"is no file of answers: {error}.", "It is TOML: key = value.") from None


class Dialogue:
    """Asks, checks, asks again. `answers` are taken first, and a wrong one ends the set-up instead of being asked anew.

    `ask` shows a prompt and returns a line; None where nobody is there to answer. Raises `ConfigurationError` for an
    answer that is missing or wrong, and where the person leaves.
    """

    def __init__(
        self, answers: Mapping[str, Any], ask: Callable[[str], str] | None, say: Callable[[str], None]
    ) -> None:
        self._answers, self._ask, self.say = answers, ask, say

    @property
    def is_attended(self) -> bool:
        """Whether a person answers."""
        return self._ask is not None

    def text(
        self, key: str, question: str, *, default: str | None = None, check: Callable[[str], str | None] | None = None
    ) -> str:
        """Return one line. `check` returns what is wrong with it, or None."""
        if key in self._answers:
            given = str(self._answers[key])
            wrong = check(given) if check is not None else None
            if wrong is not None:
                raise ConfigurationError(f"the answer `{key}`", f"{wrong}.", "Mend it in the file of answers.")
            return given
        if self._ask is None:
            if default is not None and (check is None or check(default) is None):
                return default
            raise ConfigurationError(
                f"the answer `{key}`", "is missing, and nobody is there to ask.", f"Add it to the answers: {question}."
            )
        for _ in range(_TRIES):
            line = self._line(f"{question}{f' [{default}]' if default is not None else ''}: ")
            given = line or (default or "")
            wrong = "say something" if not given else check(given) if check is not None else None
            if wrong is None:
                return given
            self.say(f"  {wrong}")
        raise ConfigurationError(f"the answer `{key}`", "was wrong too often.", "Start again when you know it.")

    def choice(self, key: str, question: str, options: Sequence[str], *, default: str | None = None) -> str:
        """Return one of the options, named by its words or its number."""

        def wrong(given: str) -> str | None:
            return None if _picked(given, options) is not None else f"one of: {', '.join(options)}"

        picked = _picked(self.text(key, question, default=default, check=wrong), options)
        assert picked is not None, "checked above"
        return picked

    def _line(self, prompt: str) -> str:
        assert self._ask is not None, "asked only where somebody is there"
        try:
            return self._ask(prompt).strip()
        except EOFError:
            raise ConfigurationError("the set-up", "was left.", "Start it again: nothing was written.") from None


def _picked(given: str, options: Sequence[str]) -> str | None:
    if given in options:
        return given
    if given.isdecimal() and 1 <= int(given) <= len(options):
        return options[int(given) - 1]
    return None


def toml_string(value: str) -> str:
    """Return a value as a TOML basic string; any text is safe in it."""
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def shown(untrusted_name: str) -> str:
    """Return a server's word for a terminal: what a terminal would obey is replaced."""
    return "".join(character if character.isprintable() else "?" for character in untrusted_name)
