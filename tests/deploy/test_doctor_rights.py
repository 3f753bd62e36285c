"""What the doctor says of the move login's rights: what moving needs, what undoing needs, what nothing needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from change_executor.config import Queue
from change_executor.doctor.move_rights import look_at_rights
from shared.doctor.finding import Fault, Looking

if TYPE_CHECKING:
    from collections.abc import Mapping

    from change_executor.looking import Looking as MailLooking


def queue(*, undo: bool = True) -> Queue:
    said: dict[str, Any] = {
        "id": "support",
        "credential": "move",
        "account": "shop",
        "incoming": "Incoming",
        "undo": undo,
        "to": {"processed": {"mailbox": "Processed"}, "escalate": {"mailbox": "Escalate"}},
    }
    return Queue.model_validate(said)


class Server:
    """One that tells these rights, and none where it has none to tell."""

    def __init__(self, rights: Mapping[str, str | None], *capabilities: str) -> None:
        self._rights, self._capabilities = rights, capabilities

    def has_capability(self, name: str) -> bool:
        return name in self._capabilities

    def rights(self, mailbox: str) -> frozenset[str] | None:
        said = self._rights[mailbox]
        return None if said is None else frozenset(said)


ALL = "lrswite"


def said_of(
    incoming: str | None = ALL,
    processed: str | None = ALL,
    escalate: str | None = ALL,
    *,
    undo: bool = True,
    offers: tuple[str, ...] = (),
) -> tuple[list[str], list[str]]:
    looking = Looking()
    server = Server({"Incoming": incoming, "Processed": processed, "Escalate": escalate}, *offers)
    look_at_rights(cast("MailLooking", server), queue(undo=undo), looking)
    report = looking.report()
    assert all(each.fault is Fault.MOVE_RIGHTS for each in report.findings)
    return [each.what for each in report.findings], list(report.notes)


def test_with_all_rights_nothing_is_said() -> None:
    assert ([], []) == said_of()


@pytest.mark.parametrize("lacking", ["r", "t", "e"])
def test_what_is_moved_out_needs_three_rights(lacking: str) -> None:
    found, _ = said_of(incoming=ALL.replace(lacking, ""), undo=False)
    assert [f"support: the login lacks `{lacking}` on 'Incoming'"] == found


def test_what_is_moved_in_needs_one_in_each_destination() -> None:
    found, _ = said_of(processed="lrswte", undo=False)
    assert ["support: the login lacks `i` on 'Processed'"] == found
    found, _ = said_of(escalate="lrswte", undo=False)
    assert ["support: the login lacks `i` on 'Escalate'"] == found


@pytest.mark.parametrize("surplus", ["k", "x", "a"])
def test_each_right_that_nothing_needs_is_noted(surplus: str) -> None:
    assert ([], [f"support: the login has `{surplus}` on 'Incoming', which nothing here needs"]) == said_of(
        incoming=ALL + surplus
    )
    assert ([], [f"support: the login has `{surplus}` on 'Escalate', which nothing here needs"]) == said_of(
        escalate=ALL + surplus
    )


@pytest.mark.parametrize("lacking", ["s", "w"])
def test_flags_that_one_destination_would_lose_are_noted(lacking: str) -> None:
    lost = "support: moved messages lose flags: give `s` and `w` on the destinations"
    assert ([], [lost]) == said_of(escalate=ALL.replace(lacking, ""))
    assert ([], [lost]) == said_of(processed=ALL.replace(lacking, ""))
    assert ([], []) == said_of(incoming=ALL.replace(lacking, ""))


@pytest.mark.parametrize("rights", [ALL, None])
def test_that_cyrus_forgets_what_others_have_read_is_noted_whatever_the_rights(rights: str | None) -> None:
    # As Cyrus 3.6 answers CAPABILITY to the move login.
    found, notes = said_of(rights, offers=("ACL", "ANNOTATE-EXPERIMENT-1", "MOVE"))
    assert [] == found
    assert ["support: on Cyrus \\Seen is each login's own"] == [
        each.partition(",")[0] for each in notes if "Cyrus" in each
    ]


def test_that_undo_would_be_refused_is_noted_where_it_is_wanted() -> None:
    refused = "support: undo will be refused: it needs `lrswite` on all mailboxes"
    for rights in (("lrte", ALL, ALL), (ALL, "lrswi", ALL), (ALL, ALL, "lrswit")):
        assert ([], [refused]) == said_of(*rights)
        assert ([], []) == said_of(*rights, undo=False)


def test_where_one_mailbox_tells_no_rights_only_that_is_said() -> None:
    unknown = "support: the server tells no rights: only this program is narrow"
    assert ([], [unknown]) == said_of(None, None, None)
    assert ([], [unknown]) == said_of(incoming="", escalate=None)
