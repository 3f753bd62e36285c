"""What this server can do (RFC 8620 §2, RFC 8621 §1.3)."""

from typing import Final

CORE: Final = "urn:ietf:params:jmap:core"
MAIL: Final = "urn:ietf:params:jmap:mail"
SUBMISSION: Final = "urn:ietf:params:jmap:submission"
VACATION_RESPONSE: Final = "urn:ietf:params:jmap:vacationresponse"
# The extension of this server: what an agent needs beyond RFC 8621.
AGENT: Final = "urn:x-mailwarrant:agent"

# What a request may name in `using`. Some clients always send the submission URN, so it is known; no account has it.
KNOWN_CAPABILITIES: Final = (CORE, MAIL, SUBMISSION, AGENT)

# The longest name that IMAP servers of today give a mailbox, in octets; RFC 8621 §1.3.1 asks for 100 at least.
MAX_MAILBOX_NAME_OCTETS: Final = 255
