"""`agent-reader mcp`: MCP over standard input and output, a thin relay that runs as the agent's own user.

It passes each message on to the reader's daemon with the agent's reader token, and has two tools of its own that speak
to the executor's intake with the agent's proposer token. It holds these two tokens and nothing else: no mail login, no
index, no code that speaks IMAP (a contract keeps it so). Standard output carries protocol and nothing besides.
Standard: the Model Context Protocol's stdio transport, revisions 2025-11-25 and 2026-07-28.
"""
