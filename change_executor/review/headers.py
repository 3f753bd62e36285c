"""The headers of every answer: what a browser may do with a page that shows hostile mail."""

from collections.abc import Mapping
from typing import Final

# Scripts and styles of our own only, no inline code, no string ever parsed as markup: tried against a page that
# renders hostile mail.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
}

# The answer that holds a message's own HTML: no script, no style, no image, no form, no origin; framed by us alone.
FRAME_POLICY: Final = "sandbox; default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

FRAME_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": FRAME_POLICY,
    "x-frame-options": "SAMEORIGIN",
}
