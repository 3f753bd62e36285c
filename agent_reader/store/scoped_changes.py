"""What changed, as a scope sees it: the view that stands for the table `changes`.

An Email that comes into the scope was created, one that leaves it was destroyed; a change that is not seen is none.
Whether it was seen before and after follows from its mailboxes then (`email_changes`) and from what never changes:
when it was received, who sent it, whether it signs somebody in. A Thread changes with the Emails of it that are seen,
the counts of a Mailbox with those of its Threads; none of that is told by `changes`, which speaks of all Emails.
"""

# ruff: noqa: S608 - the SQL is made of names and conditions of this package alone; values lie in tables

from collections.abc import Callable
from typing import Final

from agent_reader.store.changes import BY_OTHERS
from agent_reader.store.writing import KEYWORDS_CHANGED, UNREAD_CHANGED, WORDS_CHANGED

_ITSELF_CHANGED: Final = KEYWORDS_CHANGED | WORDS_CHANGED

_SOURCE: Final = (
    "main.email_changes c LEFT JOIN main.emails e ON e.key = c.email_key "
    "LEFT JOIN main.gone_emails g ON g.key = c.email_key"
)
_THREAD_KEY: Final = "coalesce(e.thread_key, g.thread_key)"
_THREAD_ID: Final = f"coalesce((SELECT t.id FROM main.threads t WHERE t.key = {_THREAD_KEY}), g.thread_id)"


def changes_view(in_mailboxes: str | None, inside: Callable[[str], str]) -> str:
    """Return the SELECT of the view.

    `in_mailboxes` is the test that a mailbox's key must pass, None where all do; `inside` makes the condition on what
    never changes, of an Email that is there or was, from its key.
    """
    seen = _Seen(in_mailboxes, inside)
    return f"{seen.emails()} UNION ALL {seen.threads()} UNION ALL {seen.mailboxes()} UNION ALL {seen.counts()}"


def mailbox_changes(in_mailboxes: str | None) -> str:
    """Return what follows FROM: changes `r` of Mailboxes themselves, not of their counts; more conditions may follow.

    Of what became of a Mailbox by others (`BY_OTHERS`), as far as one of those is seen that became another by itself.
    """
    told = "main.changes r WHERE r.type = 'Mailbox' AND r.kind <> 'counted'"
    if in_mailboxes is None:
        return told
    ids = f"(SELECT b.id FROM main.mailboxes b WHERE b.key {in_mailboxes})"
    by_itself = (
        f"SELECT 1 FROM main.changes o WHERE o.type = 'Mailbox' AND o.state = r.state AND o.kind <> 'counted' "
        f"AND o.id IN {ids} AND NOT EXISTS (SELECT 1 FROM main.changes w WHERE w.type = '{BY_OTHERS}' "
        "AND w.state = o.state AND w.id = o.id)"
    )
    return f"{told} AND r.id IN {ids} AND EXISTS ({by_itself})"


class _Seen:
    """The arms of the view. `c` is a row of `email_changes`, `e` its Email that is there, `g` one that was."""

    def __init__(self, in_mailboxes: str | None, inside: Callable[[str], str]) -> None:
        self._in_mailboxes, self._inside = in_mailboxes, inside
        self._before, self._after = self._shown("c.mailboxes_before"), self._shown("c.mailboxes_after")

    def emails(self) -> str:
        return (
            "SELECT 'Email' AS type, c.state AS state, coalesce(e.id, g.id) AS id, "
            f"CASE WHEN NOT {self._before} THEN 'created' WHEN NOT {self._after} THEN 'destroyed' ELSE 'updated' END "
            f"AS kind, c.at AS at FROM {_SOURCE} WHERE {self._inside('c.email_key')} "
            f"AND ({self._before} OR {self._after}) AND ({self._moved()} OR c.changed & {_ITSELF_CHANGED})"
        )

    def threads(self) -> str:
        was = self._any_member("x.state < c.state", "x.state >= c.state")
        is_now = self._any_member("x.state <= c.state", "x.state > c.state")
        inner = (
            f"SELECT DISTINCT c.state AS state, {_THREAD_ID} AS id, c.at AS at, {was} AS was, {is_now} AS is_now "
            f"FROM {_SOURCE} WHERE {self._inside('c.email_key')} AND {self._before} <> {self._after}"
        )
        return (
            "SELECT 'Thread', state, id, CASE WHEN NOT was THEN 'created' WHEN NOT is_now THEN 'destroyed' "
            f"ELSE 'updated' END, at FROM ({inner})"
        )

    def mailboxes(self) -> str:
        told = mailbox_changes(self._in_mailboxes)
        return f"SELECT r.type, r.state, r.id, r.kind, r.at FROM {told}"

    def counts(self) -> str:
        touched = (
            "SELECT value FROM json_each(c.mailboxes_before) UNION SELECT value FROM json_each(c.mailboxes_after) "
            f"UNION SELECT v.mailbox_key FROM temp.email_mailboxes v WHERE v.thread_key = {_THREAD_KEY}"
        )
        of_scope = "" if self._in_mailboxes is None else f" AND m.key {self._in_mailboxes}"
        return (
            f"SELECT DISTINCT 'Mailbox', c.state, m.id, 'counted', c.at FROM {_SOURCE} JOIN main.mailboxes m "
            f"ON m.key IN ({touched}) WHERE {self._inside('c.email_key')} AND ({self._before} OR {self._after}) "
            f"AND ({self._moved()} OR c.changed & {UNREAD_CHANGED}){of_scope} "
            f"AND NOT EXISTS (SELECT 1 FROM {mailbox_changes(self._in_mailboxes)} AND r.state = c.state "
            "AND r.id = m.id)"
        )

    def _shown(self, column: str) -> str:
        if self._in_mailboxes is None:
            return f"({column} <> '[]')"
        return f"EXISTS (SELECT 1 FROM json_each({column}) j WHERE j.value {self._in_mailboxes})"

    def _moved(self) -> str:
        """Whether the mailboxes that are seen are others than before."""
        if self._in_mailboxes is None:
            return "c.mailboxes_before <> c.mailboxes_after"
        before, after = (
            f"(SELECT json_group_array(j.value) FROM json_each({column}) j WHERE j.value {self._in_mailboxes})"
            for column in ("c.mailboxes_before", "c.mailboxes_after")
        )
        return f"{before} <> {after}"

    def _any_member(self, until: str, since: str) -> str:
        """Whether an Email of the Thread was seen then: by its last change until then, its first since, or now."""
        before, after = self._shown("x.mailboxes_before"), self._shown("x.mailboxes_after")
        seen = (
            f"coalesce((SELECT {after} FROM main.email_changes x WHERE x.email_key = n.key AND {until} "
            f"ORDER BY x.state DESC LIMIT 1), (SELECT {before} FROM main.email_changes x WHERE x.email_key = n.key "
            f"AND {since} ORDER BY x.state LIMIT 1), "
            "EXISTS (SELECT 1 FROM temp.email_mailboxes v WHERE v.email_key = n.key))"
        )
        members = (
            f"(SELECT p.key AS key FROM main.emails p WHERE p.thread_key = {_THREAD_KEY} "
            f"UNION ALL SELECT q.key FROM main.gone_emails q WHERE q.thread_key = {_THREAD_KEY})"
        )
        return f"EXISTS (SELECT 1 FROM {members} n WHERE {self._inside('n.key')} AND {seen})"
