"""Who may read, and what was read: reader tokens, and the read log that is committed before an answer leaves.

A file of its own (`access.db`): it outlives the index, which can be deleted and made anew, and no agent reaches it.
Limits: it says what was answered, not what a model took in.
"""

from agent_reader.access.access import Access
from agent_reader.access.agents import Agent, KnownToken
from agent_reader.access.read_log import Line, Shown

__all__ = ["Access", "Agent", "KnownToken", "Line", "Shown"]
