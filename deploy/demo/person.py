"""A person with a browser that has no JavaScript: follows links and submits forms as they stand in the page."""

import re
from html import unescape
from typing import Final, Self

import httpx

_SECONDS: Final = 30.0
_HIDDEN_INPUT: Final = re.compile(r"<input[^<>]*type=\"hidden\"[^<>]*>")


class PageSurprise(Exception):  # noqa: N818 - the page is not what a person would expect
    """The page has no such form, or answered with an error."""


class Person:
    """One browser of one person; use as a context manager."""

    def __init__(self, review_url: str) -> None:
        self.browser = httpx.Client(
            base_url=review_url,
            headers={"Origin": review_url},
            timeout=_SECONDS,
            follow_redirects=True,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.browser.close()

    def sign_in_by_link(self, link: str, password: str) -> None:
        """Spend a link of `change-executor user link`, and set a first password."""
        page = self.submit(self.browser.get("/link"), "/link", {"secret": link.partition("#")[2]})
        self.submit(page, "/password", {"password": password, "again": password})

    def sign_in(self, name: str, password: str) -> None:
        """Sign in by name and password."""
        self.submit(self.browser.get("/sign-in"), "/sign-in", {"name": name, "password": password})

    def item(self, proposal_id: str) -> httpx.Response:
        """Open the page of a proposal."""
        return self.browser.get(f"/p/{proposal_id}")

    def offers(self, proposal_id: str, action: str) -> httpx.Response | None:
        """Return the page of a proposal where it has a button for this action now."""
        page = self.item(proposal_id)
        return page if f'action="/p/{proposal_id}/{action}"' in page.text else None

    def submit(self, page: httpx.Response, action: str, fields: dict[str, str]) -> httpx.Response:
        """Press the button of the form for `action`, with what its hidden fields hold."""
        start = page.text.find(f'action="{action}"')
        form = page.text[start : page.text.find("</form>", start)]
        if start < 0:
            raise PageSurprise(f"there is no form for {action} on {page.url}")
        hidden = {_attribute(tag, "name"): _attribute(tag, "value") for tag in _HIDDEN_INPUT.findall(form)}
        answer = self.browser.post(action, data=hidden | fields)
        if answer.status_code != httpx.codes.OK:
            raise PageSurprise(f"{action} was answered with {answer.status_code}")
        return answer


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf'\b{name}="([^"]*)"', tag)
    return unescape(match[1]) if match else ""
