"""Keeps the mirror equal to the server: pure `plan`, thin `run`.

Knows IMAP's nouns only (mailbox, UID, UIDVALIDITY, MODSEQ, flags). What it needs of the store is the Protocol in
`mirror.py`; the store satisfies it.
"""
