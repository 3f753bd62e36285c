"""A read-only IMAP session (RFC 9051): EXAMINE, FETCH with PEEK, SEARCH by UID, and little else.

`shared.reader_verbs` is the closed table of what can be said; every octet to the server passes `shared.imap_guard` with
it. This room knows mailboxes, UIDs and flags; it knows nothing of JMAP, stores nothing, and can change nothing.
"""
