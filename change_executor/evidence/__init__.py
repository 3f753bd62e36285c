"""What the executor saw for itself: where the message lies, its octets' digest, and a reading made in a confined child.

The reader's private socket gives hints; nothing of it is believed. Parsing runs in `child.py`, another process without
credential, journal or socket, and its answer is untrusted until `reading.py` has checked it.
"""
