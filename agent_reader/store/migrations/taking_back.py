"""What the steps back have in common: the search table that is made anew."""

from alembic import context, op


def search_anew(what: str) -> None:
    """Say that `what` is lost, and let the older release make the search table anew in its own shape and words.

    No release has the shape 0. It ends the states of before with it: the same question may have other results.
    """
    op.execute("UPDATE account SET search_shape = 0")
    context.config.attributes["lost"].append(f"{what}; the older release makes its search table anew")
