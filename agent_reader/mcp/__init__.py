"""The agent's other door: mail as MCP tools, in answers that cost little context and that no mail can turn.

Tools only read; each answers from one snapshot made for the token, is put on record before it leaves, and stays under
a cap with a way to the rest. Words of mail stand inside the fence alone, in answers and errors alike; an error never
repeats what it was given. `desk` is the whole core and knows no protocol; `server` and `door` alone import the SDK.
Standard: the Model Context Protocol, revisions 2025-11-25 and 2026-07-28.
"""
