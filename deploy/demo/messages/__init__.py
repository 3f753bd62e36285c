"""The letters of the sample mailbox: a small tea shop, its customers, its suppliers and three mails with bad intent.

`letter` builds octets with the standard library's email package; every other module returns letters. Everything is
invented, every domain ends in .example (RFC 2606 §2), and the same present gives the same octets.
"""
