"""The Reading House: a mailbox that an agent can read and cannot change.

`imap -> sync -> store -> query -> jmap`; imports point backwards along that line only. Nothing here can write to a
mail server: there is no code for it, and the guard on the socket refuses what is not in `shared/reader_verbs.py`.
"""
