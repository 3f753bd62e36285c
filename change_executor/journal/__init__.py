"""The journal: proposals, decisions, moves and outcomes, and one append-only chain of events over them.

Each change of state and its event commit in one transaction before anything is answered. Events carry ids, digests
and codes only; texts lie in a table apart, so that content can be forgotten and the chain stays whole. Any process of
the executor's user may append; nothing here talks to a mail server, and nothing here decides.
"""
