"""When mail last came in: the state of the type EmailDelivery, which nothing else changes (RFC 8621 §1.5)."""

import threading

import apsw

_LAST_DELIVERY = (
    "SELECT state FROM changes WHERE type = 'Email' AND kind = 'created' AND state > ? ORDER BY state DESC LIMIT 1"
)


class Deliveries:
    """What is known of when mail last came into one account, or into what one scope lets through of it.

    Any thread may call.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The epoch, the number of the state that was looked at last, and that of the last state that brought mail.
        self._last: tuple[str, int, int] | None = None

    def state(self, connection: apsw.Connection, state: str) -> str:
        """Return the state in which an Email last came to be seen; `state` is that of the view.

        Of what came before all changes that are remembered nothing is known: then it is a state before the first one.
        """
        epoch, _, last = state.partition("-")
        number = int(last)
        with self._lock:
            known = self._last
        # Only what happened since is gone through: flags change for weeks in an account without new mail.
        after, delivered = (known[1], known[2]) if known and known[0] == epoch and known[1] <= number else (0, 0)
        if after < number:
            delivered = int(connection.execute(_LAST_DELIVERY, (after,)).get or delivered)
            with self._lock:
                if self._last is known:
                    self._last = (epoch, number, delivered)
        return f"{epoch}-{delivered}"
