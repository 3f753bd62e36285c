"""The index on disk: SQLite. Crosses from IMAP's vocabulary to JMAP's; one writer, many snapshot readers.

Text, structure and headers are kept compressed; attachments are not. The index is plain text on disk to whoever can
read its folder.
"""
