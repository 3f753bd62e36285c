"""A read-only IMAP session (RFC 9051): EXAMINE, FETCH with PEEK, SEARCH by UID, and a closed table of them.

`verbs.py` is the table; every octet to the server passes `shared.imap_guard` with it. This room knows mailboxes, UIDs
and flags; it knows nothing of JMAP, stores nothing, and can change nothing.
"""
