"""The demo: a sample mailbox on an IMAP server of its own, with three logins.

`mailbox` builds the messages, `roles` says what each login may do, `server` is the process that speaks IMAP.
Loopback only, nothing on disk, every start is a new mailbox. Not part of the wheel, and no boundary: everything here
runs as one user.
"""
