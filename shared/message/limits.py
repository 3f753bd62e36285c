"""What one message may cost: each cap, and why it stands where it does."""

from typing import Final

# People nest mail by forwarding, and forwarded messages are leaves here; real trees stay below 10 levels. 100 also
# keeps the JSON of a bodyStructure far from any decoder's recursion limit.
MAX_DEPTH: Final = 100

# The largest real messages (digests, photo albums) carry a few hundred parts. Past 1,000 the last part holds the rest.
MAX_PARTS: Final = 1_000

# Heavily relayed list mail has some 150 fields. The cap is for the whole message, all parts together.
MAX_HEADER_FIELDS: Final = 10_000

# Mail servers refuse headers beyond 64 KiB to 1 MiB. The cap is for the whole message, all parts together.
MAX_HEADER_OCTETS: Final = 1024 * 1024

# A field with a thousand recipients, each name in several encoded-words, stays below; what follows stays undecoded.
MAX_ENCODED_WORDS: Final = 10_000

# RFC 2046 §5.1.1 allows 70 characters; some senders go over. A longer one is no boundary that a mail program wrote.
MAX_BOUNDARY_OCTETS: Final = 1_000

# RFC 2231 continuations of one parameter: 100 pieces of 60 characters hold any file name a file system can.
MAX_PARAMETER_SECTIONS: Final = 100

# A Content-Type or Content-Disposition with a long file name in RFC 2231 sections takes a few kilobytes.
MAX_PARAMETERISED_CHARACTERS: Final = 32 * 1024

# RFC 8621 §4.1.4: a preview is at most 256 characters.
MAX_PREVIEW_CHARACTERS: Final = 256

# The longest newsletters link to some 300 places. Links past this are in the text and are not judged.
MAX_LINKS: Final = 1_000

# As many as there are links, and more than any mail has. Those past this are not searched.
MAX_TITLES: Final = 1_000
