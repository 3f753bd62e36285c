"""The published matrix: each statement of manifest.toml, its status, and the tests that show it.

`python -m tests.agent_reader.jmap.matrix` writes it into docs/jmap.md, between the two comments that name it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[3]
MANIFEST: Final = Path(__file__).with_name("manifest.toml")
DOCUMENT: Final = CHECKOUT / "docs/jmap.md"
BEGIN: Final = "<!-- the matrix: made by python -m tests.agent_reader.jmap.matrix -->"
END: Final = "<!-- end of the matrix -->"


@dataclass(frozen=True, slots=True)
class Statement:
    """One testable statement; `deviation` says where we differ from its source, and why."""

    id: str
    area: str
    source: str
    says: str
    deviation: str | None = None


def statements() -> tuple[Statement, ...]:
    """Every statement of the manifest, in its order."""
    return tuple(Statement(**each) for each in tomllib.loads(MANIFEST.read_text(encoding="utf-8"))["statement"])


@lru_cache(maxsize=1)
def marked_tests() -> Mapping[str, Sequence[str]]:
    """The tests (`file::function`) by the id of each statement that they are marked with."""
    found: dict[str, list[str]] = {}
    for path in sorted((CHECKOUT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.statement(" not in text:
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for statement_id in _ids(function):
                    found.setdefault(statement_id, []).append(f"{path.relative_to(CHECKOUT)}::{function.name}")
    return found


def _ids(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.statement":
            assert not decorator.keywords, f"{function.name}: ids alone"
            yield from (str(ast.literal_eval(argument)) for argument in decorator.args)


def matrix() -> str:
    """The table as Markdown, with a heading for each area, and the deviations after it."""
    tests, lines = marked_tests(), list[str]()
    area = None
    for each in statements():
        if each.area != area:
            area = each.area
            lines += ["", f"### {area}", "", "| | statement | source | status | tests |", "|---|---|---|---|---|"]
        status = "deviates" if each.deviation else "kept"
        shown = "<br>".join(f"`{name.removeprefix('tests/')}`" for name in tests.get(each.id, ()))
        says = re.sub(r"([|<>*_\\])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", each.says).replace("|", "\\|")
        lines.append(f"| {each.id} | {says} | {each.source} | {status} | {shown} |")
    lines += ["", "### Deviations", ""]
    lines += [f"- {each.id} ({each.source}): {each.deviation}" for each in statements() if each.deviation]
    return "\n".join([BEGIN, *lines[1:], "", END])


def document_with(table: str) -> str:
    """The text of docs/jmap.md with this table in its place."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    return before + table + rest.partition(END)[2]


if __name__ == "__main__":
    DOCUMENT.write_text(document_with(matrix()), encoding="utf-8")
