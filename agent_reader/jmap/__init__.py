"""The read-only JMAP server: RFC 8620 and the read half of RFC 8621 under the profile for AI agents.

A route authenticates, parses, calls one function, and encodes. Every method that would change something answers
`accountReadOnly`; there is no code behind it.
"""
