"""Templates: everything is escaped, and a name that is missing is a bug rather than an empty place."""

from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from change_executor.review import cautions, wording
from change_executor.review.columns import blocks

_FOLDER: Final = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals["words"] = wording
    environment.globals["cautions"] = cautions
    environment.filters["warnings"] = cautions.warnings
    environment.filters["kinds"] = cautions.kinds
    environment.filters["exact"] = wording.exact
    environment.filters["size"] = wording.size
    environment.filters["blocks"] = blocks
    return environment


def render(template: str, **values: Any) -> str:  # noqa: ANN401 - each template names its own
    """Return a page; values from mail, agents and people are escaped like all others."""
    return _environment().get_template(template).render(**values)
