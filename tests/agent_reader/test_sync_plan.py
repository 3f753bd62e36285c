"""The plan for one mailbox, by what is here and what the server says."""

from __future__ import annotations

from agent_reader.imap.values import Examined, MessageState
from agent_reader.sync.plan import (
    Batch,
    HeaderOnly,
    Large,
    ListUids,
    Local,
    LookAtAll,
    LookAtChanges,
    Restart,
    TakeTold,
    Told,
    Whole,
    batches,
    changed,
    difference,
    plan,
)
from shared.identity import MAX_MESSAGE_OCTETS


def here(*, uidvalidity: int | None = 7, uidnext: int = 4, highestmodseq: int | None = 10, count: int = 3) -> Local:
    return Local(uidvalidity, uidnext, highestmodseq, count)


def there(*, uidvalidity: int = 7, uidnext: int = 4, exists: int = 3, highestmodseq: int | None = 10) -> Examined:
    return Examined(uidvalidity, uidnext, exists, highestmodseq, None)


def test_nothing_to_do_when_all_numbers_agree() -> None:
    assert () == plan(here(), there())


def test_the_first_look_and_another_uidvalidity_begin_anew() -> None:
    for local in (here(uidvalidity=None, count=0), here(uidvalidity=6)):
        assert (Restart(7), ListUids()) == plan(local, there())


def test_another_modseq_asks_for_changes_since_the_old_one() -> None:
    assert (LookAtChanges(10),) == plan(here(), there(highestmodseq=12))


def test_another_count_or_uidnext_lists_the_uids() -> None:
    assert (LookAtChanges(10), ListUids()) == plan(here(), there(uidnext=5, exists=4, highestmodseq=12))
    assert (ListUids(),) == plan(here(), there(exists=2))
    # One came and one went.
    assert (ListUids(),) == plan(here(), there(uidnext=5))


def test_an_interrupted_first_look_that_remembers_a_mod_sequence_lists_what_is_missing() -> None:
    # UIDNEXT is remembered only when nothing is missing, so equal counts prove nothing.
    assert (ListUids(),) == plan(here(uidnext=1), there())


def test_without_mod_sequences_every_message_is_looked_at() -> None:
    assert (LookAtAll(),) == plan(here(), there(highestmodseq=None))
    assert (LookAtAll(),) == plan(here(highestmodseq=None), there())


def test_a_mod_sequence_that_went_back_is_not_believed() -> None:
    assert (LookAtAll(),) == plan(here(), there(highestmodseq=9))


def test_what_a_server_tells_is_all_there_is_to_do_where_it_adds_up() -> None:
    assert (TakeTold(),) == plan(here(), there(exists=4, uidnext=7, highestmodseq=19), Told(gone=1, new=2))
    assert (TakeTold(),) == plan(here(), there(), Told(gone=0, new=0))


def test_what_a_server_tells_is_checked_by_a_list_where_it_does_not_add_up() -> None:
    assert (TakeTold(), ListUids()) == plan(here(), there(exists=9, uidnext=12), Told(gone=0, new=1))


def test_what_was_told_of_another_uidvalidity_is_nothing() -> None:
    assert (Restart(7), ListUids()) == plan(here(uidvalidity=6), there(), Told(gone=1, new=1))


def test_new_and_absent_messages_are_told_by_comparing() -> None:
    found = difference([2, 9], [1, 2, 3, 4, 5])
    assert (1, 3, 4, 5) == found.new
    assert (9,) == found.absent


def test_what_slid_out_of_a_window_is_not_absent() -> None:
    assert (5,) == difference([1, 2, 5], [4, 6, 7], window=3).absent
    assert (1, 2, 5) == difference([1, 2, 5], [4, 6], window=3).absent
    assert () == difference([], [], window=3).absent


def test_only_states_that_differ_of_messages_that_are_here_are_changes() -> None:
    old, new = MessageState(frozenset(), 1), MessageState(frozenset({"\\Seen"}), 2)
    assert {2: new} == changed({1: old, 2: old}, {1: old, 2: new, 3: new})


def divided(sizes: dict[int, int], most: int = 200) -> list[Batch]:
    return list(batches(list(sizes), sizes, most))


def test_batches_keep_the_budget_of_messages_and_of_octets() -> None:
    assert [Whole((1, 2)), Whole((3,))] == divided({1: 10, 2: 10, 3: 10}, most=2)
    mib = 1024 * 1024
    assert [Whole((1, 2)), Whole((3,))] == divided({1: mib, 2: mib, 3: 1})


def test_large_messages_go_alone_and_the_largest_give_their_header_only() -> None:
    large = 2 * 1024 * 1024 + 1
    assert [Whole((1,)), Large(2), HeaderOnly(3), Large(4), Whole((5,))] == divided(
        {1: 10, 2: large, 3: MAX_MESSAGE_OCTETS + 1, 4: MAX_MESSAGE_OCTETS, 5: 10}
    )


def test_a_message_without_a_stated_size_is_fetched_alone() -> None:
    assert [Whole((1,)), Whole((2,)), Whole((3,))] == list(batches([1, 2, 3], {1: 10, 3: 10}, 200))


def test_every_message_is_in_exactly_one_batch() -> None:
    sizes = {uid: uid * 9_973 for uid in range(1, 400)}
    uids = [uid for batch in divided(sizes) for uid in (batch.uids if isinstance(batch, Whole) else (batch.uid,))]
    assert sorted(sizes) == sorted(uids)
