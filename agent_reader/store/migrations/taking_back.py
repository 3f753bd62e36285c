"""What the steps back have in common: the search table that is made anew, and the mirror that is."""

from alembic import context, op

from shared.revisions import DowngradeRefused


def search_anew(what: str) -> None:
    """Say that `what` is lost, and let the older release make the search table anew in its own shape and words.

    No release has the shape 0. It ends the states of before with it: the same question may have other results.
    """
    op.execute("UPDATE account SET search_shape = 0")
    context.config.attributes["lost"].append(f"{what}; the older release makes its search table anew")


def made_anew(why: str) -> DowngradeRefused:
    """Return the refusal of a step that costs more than the mirror does."""
    return DowngradeRefused(
        "made_anew",
        why,
        "Stop the reader and remove mail-*.db with its -wal and -shm: the older release makes the index anew from the "
        "mail server, and nothing is lost but time.",
    )
