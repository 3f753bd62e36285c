"""docs/configuration.md, made from the settings of the programs: every key, its form, its default, and what it is for.

`python -m tests.architecture.configuration_reference` prints it; `make docs` writes it; a test holds the file to it.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import TYPE_CHECKING, Any, Final, get_args

from agent_reader.config import ReaderSettings
from change_executor.config import ExecutorSettings
from read_gate.config import GateSettings
from shared.settings import Section

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES: Final[tuple[tuple[str, str, type[Section]], ...]] = (
    ("reader.toml", "The reader", ReaderSettings),
    ("executor.toml", "The executor", ExecutorSettings),
    ("gate.toml", "The gate (optional)", GateSettings),
)

HEAD: Final = """\
# Configuration

*Made from the settings' own fields by `make docs`; a test holds it there.*

Each program reads one TOML file, once, at its start: `/etc/mailwarrant/reader.toml`, `/etc/mailwarrant/executor.toml`
(and `/etc/mailwarrant/gate.toml` where the [gate](gate.md) is installed); `--config PATH` names another. The command
`setup` of each program writes it from a few questions, and complete examples lie in `deploy/examples/`. A key that is
not known stops the start, with its name; a mistake ends with exit status 2 and says which file, which key, and what
mends it. Paths are whole: `~` is not expanded. After a change: `systemctl restart agent-reader change-executor`.
"""


def reference() -> str:
    """Return the whole document."""
    return (
        "\n".join([HEAD, *(line for name, title, kind in FILES for line in _file(name, title, kind))]).rstrip() + "\n"
    )


def _file(name: str, title: str, kind: type[Section]) -> Iterator[str]:
    yield f"## {title}: `{name}`"
    yield ""
    for path, section in _sections(kind, ""):
        yield from _section(path, section)


def _sections(kind: type[Section], path: str) -> Iterator[tuple[str, type[Section]]]:
    """Yield a table and every table inside it, each with how it is written."""
    yield path, kind
    for name, field in kind.model_fields.items():
        for inner in _inner(field.annotation):
            written = _header(name, str(field.annotation), path)
            yield from _sections(inner, written)


def _header(name: str, annotation: str, path: str) -> str:
    outer = path.strip("[]")
    whole = f"{outer}.{name}" if outer else name
    if annotation.startswith("tuple["):
        return f"[[{whole}]]"
    return f"[{whole}.ROLE]" if annotation.startswith("dict[") else f"[{whole}]"


def _inner(annotation: Any) -> list[type[Section]]:
    if inspect.isclass(annotation) and issubclass(annotation, Section):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _inner(argument)]


def _section(path: str, kind: type[Section]) -> Iterator[str]:
    yield f"### `{path}`" if path else "### Above the first table"
    yield ""
    own = {name: field for name, field in kind.model_fields.items() if not _inner(field.annotation)}
    if not own and not path:
        yield "Nothing: every key belongs to a table."
        yield ""
        return
    yield from _prose(kind)
    schema = kind.model_json_schema()
    comments = _comments(kind)
    yield "| key | form | left out | |"
    yield "|---|---|---|---|"
    for name in own:
        said = schema["properties"][name]
        default = _default(said, is_needed=name in schema.get("required", []))
        yield f"| `{name}` | {_form(said, schema.get('$defs', {}))} | {default} | {comments.get(name, '')} |"
    yield ""


def _prose(kind: type[Section]) -> Iterator[str]:
    text = inspect.cleandoc(kind.__doc__ or "")
    text = re.sub(r"^`\[+[\w.]+\]+`( or `\[+[\w.]+\]+`)*: ", "", text)
    yield text[:1].upper() + text[1:]
    yield ""


def _comments(kind: type[Section]) -> dict[str, str]:
    """The comments right above each field, its own class before those it inherits from."""
    found: dict[str, str] = {}
    for each in kind.__mro__:
        if not issubclass(each, Section) or each is Section:
            continue
        above: list[str] = []
        for line in inspect.getsource(each).splitlines():
            text = line.strip()
            if text.startswith("# "):
                above.append(text.removeprefix("# "))
                continue
            field = re.match(r"    (\w+): ", line)
            if field and above:
                found.setdefault(field[1], " ".join(above))
            above = []
    return found


def _default(said: dict[str, Any], *, is_needed: bool) -> str:
    if is_needed:
        return "**needed**"
    value = said.get("default")
    if value is None or value == []:
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _form(said: dict[str, Any], definitions: dict[str, Any]) -> str:
    if "$ref" in said:
        return _form(definitions[said["$ref"].rsplit("/", 1)[1]], definitions)
    if "anyOf" in said:
        return " or ".join(_form(each, definitions) for each in said["anyOf"] if each.get("type") != "null")
    if "enum" in said:
        return ", ".join(f"`{each}`" for each in said["enum"])
    match said.get("type"):
        case "integer" | "number":
            return _bounds(said)
        case "boolean":
            return "`true` or `false`"
        case "array":
            items = said.get("items", {})
            return f"list of: {_form(items, definitions)}"
        case "object":
            return "table"
        case _:
            return "path" if said.get("format") == "path" else _text(said)


def _bounds(said: dict[str, Any]) -> str:
    low = said.get("minimum", said.get("exclusiveMinimum"))
    high = said.get("maximum", None if "exclusiveMaximum" not in said else said["exclusiveMaximum"] - 1)
    words = {(False, False): "number", (True, False): f"number from {low}", (True, True): f"number, {low} to {high}"}
    return words.get((low is not None, high is not None), f"number up to {high}")


def _text(said: dict[str, Any]) -> str:
    if "pattern" in said:
        pattern = said["pattern"].replace("|", "\\|")
        return f"text, `{pattern}`" if len(pattern) <= 60 else "text"
    return "text"


if __name__ == "__main__":
    sys.stdout.write(reference())
