"""An application of FastAPI that has nothing but its table of routes: no pages, no schema, no telemetry."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response


@dataclass(frozen=True, slots=True)
class Route:
    """A row of a door's table: nothing else is answered. `endpoint` names the method that does."""

    path: str
    http_method: str
    endpoint: str


def bare_app(not_in_the_table: Callable[[Request, Exception], Coroutine[Any, Any, Response]]) -> FastAPI:
    """Return one that answers by `not_in_the_table` where it has no route."""
    return FastAPI(
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: not_in_the_table},
    )
