"""Telling a person who is not looking that something waits or has gone wrong: a webhook, ntfy, or a command.

It reads the journal and writes nothing to it; it knows no mail server, and there is no SMTP. What leaves the machine is
counts and times, and subjects only where the operator says so. Standards: HTTP, Standard Webhooks 1.0.0 (HMAC-SHA-256).
"""
