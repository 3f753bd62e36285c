"""What a person types, but for `serve` and `doctor`: set-up, tokens, the read log, the index, copies, a message read.

They work on the folder of the reader, as its own user; which of them wait for its end, they say. Names and subjects are
a stranger's: nothing of them reaches the terminal but letters. Imports of weight happen in the commands: --help answers
at once. What runs as the agent's user is in `relay`.
"""
