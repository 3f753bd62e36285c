"""What every door of the reader has in common, whatever is spoken behind it: JMAP, MCP or the private socket.

Whose address was called, who asks, how many requests of one agent run at once, how a body is read, and what a refusal
looks like. One core, two doors: a token opens the same mail at both, and both leave the same lines in the read log.
"""
