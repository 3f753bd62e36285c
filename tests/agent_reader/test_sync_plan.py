"""The plan for one mailbox, by what is here and what the server says."""

from __future__ import annotations

from agent_reader.imap.values import Examined, MessageState
from agent_reader.sync.plan import (
    Batch,
    Finish,
    HeaderOnly,
    Large,
    ListUids,
    Local,
    LookAtAll,
    LookAtChanges,
    Restart,
    Whole,
    batches,
    changed,
    difference,
    plan,
)
from shared.identity import MAX_MESSAGE_OCTETS


def here(
    *, uidvalidity: int | None = 7, uidnext: int = 4, highestmodseq: int | None = 10, held: tuple[int, ...] = (1, 2, 3)
) -> Local:
    return Local(uidvalidity, uidnext, highestmodseq, held, ())


def there(*, uidvalidity: int = 7, uidnext: int = 4, exists: int = 3, highestmodseq: int | None = 10) -> Examined:
    return Examined(uidvalidity, uidnext, exists, highestmodseq, None)


def test_nothing_to_do_when_all_numbers_agree() -> None:
    assert (Finish(4, 10),) == plan(here(), there())


def test_the_first_look_and_another_uidvalidity_begin_anew() -> None:
    for local in (here(uidvalidity=None, held=()), here(uidvalidity=6)):
        assert (Restart(7), ListUids(), Finish(4, 10)) == plan(local, there())


def test_another_modseq_asks_for_changes_since_the_old_one() -> None:
    assert (LookAtChanges(10), Finish(4, 12)) == plan(here(), there(highestmodseq=12))


def test_another_count_or_uidnext_lists_the_uids() -> None:
    assert (LookAtChanges(10), ListUids(), Finish(5, 12)) == plan(here(), there(uidnext=5, exists=4, highestmodseq=12))
    assert (ListUids(), Finish(4, 10)) == plan(here(), there(exists=2))
    # One came and one went.
    assert (ListUids(), Finish(5, 10)) == plan(here(), there(uidnext=5))


def test_messages_set_aside_count_as_known() -> None:
    assert (Finish(4, 10),) == plan(Local(7, 4, 10, (1, 3), (2,)), there())


def test_without_mod_sequences_every_message_is_looked_at() -> None:
    assert (LookAtAll(), Finish(4, None)) == plan(here(), there(highestmodseq=None))
    # An interrupted first look never got as far as a mod-sequence.
    assert (LookAtAll(), Finish(4, 10)) == plan(here(highestmodseq=None), there())


def test_a_mod_sequence_that_went_back_is_not_believed() -> None:
    assert (LookAtAll(), Finish(4, 9)) == plan(here(), there(highestmodseq=9))


def test_new_messages_come_newest_first_and_failed_ones_last() -> None:
    found = difference(here(held=(2, 9)), [1, 2, 3, 4, 5], {4: 2, 5: 1})
    assert (3, 1, 5, 4) == found.new
    assert (9,) == found.absent


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
