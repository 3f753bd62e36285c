"""A certificate authority that lives as long as one test server, and a certificate for loopback by it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_DAYS: Final = "2"
_EC_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
# RFC 5280 §4.2.1.3 and §4.2.1.9; newer Pythons verify strictly and want both said.
_CA: Final = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
_LEAF: Final = (
    "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
    "basicConstraints=critical,CA:FALSE\n"
    "keyUsage=critical,digitalSignature\n"
    "extendedKeyUsage=serverAuth\n"
    "subjectKeyIdentifier=hash\n"
    "authorityKeyIdentifier=keyid\n"
)


def make_certificates(folder: Path) -> None:
    """Write `ca.crt`, `server.crt` and `server.key` (PEM), with the files they were made from."""
    (folder / "leaf.ext").write_text(_LEAF)
    ca = ("-subj", "/CN=throw-away test authority", "-keyout", "ca.key", "-out", "ca.crt")
    _openssl(folder, "req", "-x509", *_EC_KEY, "-days", _DAYS, *ca, *_CA)
    leaf = ("-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    _openssl(folder, "req", *_EC_KEY, *leaf)
    signed_by = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", _DAYS)
    _openssl(folder, "x509", "-req", "-in", "server.csr", *signed_by, "-extfile", "leaf.ext", "-out", "server.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
