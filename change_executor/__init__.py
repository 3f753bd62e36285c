"""The Workshop: one tool, in one cupboard, and a person at the desk.

`intake -> policy -> journal -> evidence -> review -> apply -> mover -> journal`. The one change that this house can
make is a move of one message between the mailboxes of one queue; `mover.py` is the only place that can make it.
"""
