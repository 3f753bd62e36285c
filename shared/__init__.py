"""The paper that passes through the slot: contracts and readings that both houses must have in common.

Nothing here imports either house, opens a database, or decides anything about a proposal.
"""
