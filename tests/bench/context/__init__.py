"""What an answer costs in context: 25 look-up tasks over one mailbox, through our tools and through other servers'.

`make bench-context` runs it and writes docs/context-economy.md.
"""
