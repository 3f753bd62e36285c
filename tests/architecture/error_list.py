"""docs/errors.md, made from the code: every problem document (RFC 9457) that either house can answer with.

`python -m tests.architecture.error_list` prints it; `make docs` writes it; a test holds the file to it.
"""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_reader.mcp.refusals import ambiguous_id, unknown_email
from agent_reader.query import BlobUnavailable, Unavailable
from shared.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

CHECKOUT: Final = Path(__file__).parents[2]
HOUSES: Final = {
    "change_executor": "The executor: intake (`/v1/...`) and both listeners' doors",
    "agent_reader": "The reader: JMAP, MCP and the private socket",
    "shared": "Every listener of both",
}
_MAKERS: Final = frozenset({"Problem", "RefusedByRule"})
_FIELDS: Final = ("status", "code", "detail", "fix", "retryable")

# As the reader raises them.
_PASSES: Final = frozenset({Unavailable.MAIL_SERVER, Unavailable.NO_SPACE})

# Makers whose code is chosen while they run: what they are called with here covers every choice.
_SAMPLES: Final[dict[str, list[tuple[Any, ...]]]] = {
    "change_executor.intake.problems.invalid_field": [
        *((name, "string_pattern_mismatch") for name in ("from", "to", "queue")),
        *(("reason", kind) for kind in ("string_type", "string_too_long", "value_error")),
        ("{name}", "another"),
    ],
    "agent_reader.mcp.agent_doors.email_id_refused": [(unknown_email(),), (ambiguous_id(["{id}", "{another}"]),)],
    "agent_reader.jmap.problems.blob_unavailable": [
        (BlobUnavailable(reason, "{detail}", retryable=reason in _PASSES),)
        for reason in Unavailable
        if reason is not Unavailable.GONE
    ],
}

HEAD: Final = """\
# Errors

*Made from the code by `make docs`; a test holds it there.*

Every refusal is a problem document (`application/problem+json`, RFC 9457) with members added: `code` is stable and for
programs, `detail` says what was wrong, `fix` what to do next, `retryable` whether the same request may succeed later.
Words in braces are filled in; they are never text from mail, another agent's, or a secret. What is not refused was
accepted, and what was accepted is not lost.

JMAP's method-level errors (RFC 8620 §3.6.2) are none of these: they come inside a response of status 200, with `type`
and `description`.
"""


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One problem as it is answered; `status` is text since one of them passes another's on."""

    code: str
    status: str
    retryable: bool
    detail: str
    fix: str


def entries(house: str) -> list[Entry]:
    """Every problem that the modules of a house make, by code."""
    found: set[Entry] = set()
    for path in sorted((CHECKOUT / house).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(f"{maker}(" in text for maker in _MAKERS):
            name = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
            found |= set(_of_module(ast.parse(text), importlib.import_module(name)))
    return sorted(found)


def page() -> str:
    """The whole document."""
    parts = [HEAD]
    for house, title in HOUSES.items():
        parts.append(f"\n## {title}\n\n| code | status | retryable | detail | fix |\n|---|---|---|---|---|\n")
        parts.extend(
            f"| `{each.code}` | {each.status} | {'yes' if each.retryable else 'no'} | {_cell(each.detail)} "
            f"| {_cell(each.fix)} |\n"
            for each in entries(house)
        )
    return "".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _of_module(tree: ast.Module, module: ModuleType) -> Iterator[Entry]:
    for function in _functions(tree):
        sampled = _SAMPLES.get(f"{module.__name__}.{function.name}")
        if sampled is not None:
            for arguments in sampled:
                made: Problem = getattr(module, function.name)(*arguments)
                yield Entry(made.code, str(made.status), made.retryable, made.detail, made.fix)
            continue
        yield from _calls(function, module, None)
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            yield from _calls(statement.value, module, None)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions and methods, but none inside another: those belong to it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _calls(node: ast.AST, module: ModuleType, case: ast.pattern | None) -> Iterator[Entry]:
    if isinstance(node, ast.match_case):
        case = node.pattern
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS:
        yield _entry(node, module, case)
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, module, case)


def _entry(call: ast.Call, module: ModuleType, case: ast.pattern | None) -> Entry:
    given = dict(zip(_FIELDS, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg in _FIELDS}
    said = {name: _words(value, module, case) for name, value in given.items()}
    assert "{" not in said["code"], f"{module.__name__}: {said['code']} needs a sample"
    return Entry(said["code"], said["status"], said.get("retryable") == "True", said["detail"], said["fix"])


def _words(node: ast.expr, module: ModuleType, case: ast.pattern | None) -> str:
    """What an expression says, as far as it is the same each time; the rest in braces."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else _words(_value(part), module, case)
            for part in node.values
        )
    if isinstance(node, ast.Attribute) and node.attr == "value" and isinstance(case, ast.MatchValue):
        node = ast.Attribute(case.value, "value", ast.Load())
    try:
        return str(eval(ast.unparse(node), vars(module)))
    except (NameError, AttributeError):
        while isinstance(node, ast.Call) and node.args:
            node = node.args[0]
        return f"{{{ast.unparse(node).rpartition('.')[2].strip('_()')}}}"


def _value(part: ast.expr) -> ast.expr:
    assert isinstance(part, ast.FormattedValue)
    return part.value


if __name__ == "__main__":
    sys.stdout.write(page())
