"""Who keeps the read login from writing, mailbox by mailbox: what a probe found, kept with its date.

A JSON file for each account in the store's folder, replaced whole: the daemon reads it, and only the probe writes it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from shared.private_file import replace_private
from shared.settings import ConfigurationError


class Enforcement(StrEnum):
    """`SERVER`: its SELECT said READ-ONLY to this login. `PROGRAM`: it did not, so only the verb table keeps it so.

    `UNKNOWN`: the mailbox could not be opened.
    """

    SERVER = "enforced by the server"
    PROGRAM = "by this program only"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one mailbox's SELECT said (RFC 9051 §7.1, READ-ONLY), and when it was asked, in UTC."""

    enforcement: Enforcement
    at: datetime


def rights_file(folder: Path, account_id: str) -> Path:
    """Return where the findings of an account are kept."""
    return folder / f"rights-{account_id}.json"


def read_findings(folder: Path, account_id: str) -> dict[str, Finding]:
    """Return the findings by mailbox name; none where nothing was ever probed or the file is damaged."""
    try:
        kept = json.loads(rights_file(folder, account_id).read_text(encoding="utf-8"))
        return {
            name: Finding(Enforcement(said["enforcement"]), datetime.fromisoformat(said["at"]).astimezone(UTC))
            for name, said in kept.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_findings(folder: Path, account_id: str, findings: Mapping[str, Finding]) -> None:
    """Replace the findings of an account. Raises `ConfigurationError`."""
    file = rights_file(folder, account_id)
    kept = {
        name: {"enforcement": found.enforcement.value, "at": found.at.isoformat()} for name, found in findings.items()
    }
    try:
        replace_private(file, json.dumps(kept, ensure_ascii=False, indent=1).encode())
    except OSError as error:
        raise ConfigurationError(
            str(file), f"cannot be written: {error.strerror}.", "Run this as the reader's user."
        ) from None


def overall(findings: Mapping[str, Finding]) -> Enforcement:
    """Return the weakest of the findings: one writable mailbox is enough to say so."""
    kinds = {found.enforcement for found in findings.values()}
    if not kinds or Enforcement.PROGRAM in kinds:
        return Enforcement.PROGRAM
    return Enforcement.UNKNOWN if Enforcement.UNKNOWN in kinds else Enforcement.SERVER
