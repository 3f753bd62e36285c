"""A connection that waits for what the server says unasked: IDLE (RFC 2177), and NOTIFY (RFC 5465) before it."""

from imapclient.exceptions import IMAPClientError

from agent_reader.errors import Refused
from agent_reader.imap import answers
from agent_reader.imap.connection import NEWS_OF_THE_MAILBOX, Connection, text_of
from agent_reader.imap.values import Heard
from shared.time_and_chance import Monotonic


class PushConnection(Connection):
    """One connection that only listens; it needs `can("IDLE")`."""

    def notify(self) -> None:
        """Ask to be told of all mailboxes of one's own. Raises `Refused` where the server does not.

        Not of some by name: Dovecot 2.3 then says nothing of one whose name is not ASCII.
        """
        self._ask("NOTIFY", "SET", "(personal (MessageNew MessageExpunge FlagChange))")

    def listen(self, seconds: float, monotonic: Monotonic) -> Heard:
        """Wait until the server tells of something, at most so long; nothing heard is an empty `Heard`.

        The connection is known to live when it returns: DONE was answered. Raises `Refused` where the server does not
        want to, and `ImapFailure`; the connection is finished then.
        """
        with self._reading():
            tag = self._say("IDLE")
            if not self._continued(tag):
                status, data = self._answer(tag)
                # The guard waits for DONE now, as whoever said IDLE has to.
                self.close()
                raise Refused("IDLE", status, text_of(data))
            until = monotonic() + seconds
            heard = self._heard()
            while not heard and (left := until - monotonic()) > 0 and self._client.wait(left):
                self._imap._get_response()  # noqa: SLF001 - see Connection
                self._imap._check_bye()  # noqa: SLF001 - see Connection
                if self._imap.tagged_commands.get(tag):
                    raise IMAPClientError("IDLE ended without DONE")
                heard = self._heard()
            self._imap.send(b"DONE\r\n")
            status, _ = self._answer(tag)
            if status != "OK":
                raise IMAPClientError(f"IDLE ended with {status}")
            return _together(heard, self._heard())

    def _continued(self, tag: bytes) -> bool:
        # Some servers say something else before the `+`.
        while self._imap._get_response() is not None:  # noqa: SLF001 - see Connection
            self._imap._check_bye()  # noqa: SLF001 - see Connection
            if self._imap.tagged_commands[tag]:
                return False
        return True

    def _heard(self) -> Heard:
        untagged = self._imap.untagged_responses
        names = answers.status_names(untagged.get("STATUS", ()))
        heard = Heard(
            selected=not NEWS_OF_THE_MAILBOX.isdisjoint(untagged),
            mailboxes=frozenset(name for name in names if name is not None),
            anything=None in names or "LIST" in untagged,
        )
        # `* OK Still here` through many hours would fill the memory.
        untagged.clear()
        return heard


def _together(first: Heard, second: Heard) -> Heard:
    return Heard(
        first.selected or second.selected, first.mailboxes | second.mailboxes, first.anything or second.anything
    )
