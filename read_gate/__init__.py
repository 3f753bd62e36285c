"""The gate: it holds a mail login that could write, under a user of its own, and passes on only what reads.

For providers that know no read-only credential. The reader signs in here with a secret that opens nothing else; the
gate signs in at the provider, and passes lines of the reader's closed table (`shared.reader_verbs`) one by one. What
comes back is parsed too: literals are counted, so that no text of a mail can be taken for the end of an answer.

It imports `shared` alone (a contract), keeps nothing on disk, and reads no message.
"""
