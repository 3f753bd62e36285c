"""Reading a form at the door: whole, of the right kind, and in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from starlette.requests import Request

from change_executor.review import forms
from change_executor.review.error_page import PageError, Refusal

if TYPE_CHECKING:
    from starlette.types import Message

FORM = [(b"content-type", b"application/x-www-form-urlencoded")]


def read(pieces: list[bytes], *, ends: bool = True) -> forms.Form:
    """Read a form that arrives in these pieces; without an end, nothing comes after them."""
    left = list(pieces)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left) or not ends}

    return asyncio.run(forms.read_form(Request({"type": "http", "method": "POST", "headers": FORM}, receive)))


def test_a_form_is_read_from_any_pieces() -> None:
    assert {"reason": "no", "version": "1"} == read([b"reason=n", b"o&ver", b"sion=1"]).fields


def test_a_form_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "FORM_SECONDS", 0.05)
    with pytest.raises(PageError) as error:
        read([b"reason=", b"a"], ends=False)
    assert (Refusal.FORM_TOO_SLOW, 408) == (error.value.refusal, error.value.refusal.value.status)


def test_a_form_that_grows_without_end_is_refused_where_it_is_too_large() -> None:
    with pytest.raises(PageError) as error:
        read([b"x" * forms.MAX_FORM_OCTETS, b"x"], ends=False)
    assert error.value.refusal is Refusal.FORM_TOO_LARGE
