"""Answers questions about mail from one snapshot of the store: filters, sorts, and what an Email looks like.

Text of a question is data, never query syntax. Nothing here writes.
"""
