"""How a tool takes its arguments and writes its answer: the same for tools that read and for those of the relay.

Pure, and no room of the reader is behind it: only what is shared by both houses.
"""
