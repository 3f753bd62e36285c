"""The commands for tokens and the read log: what a person types, and what a terminal is shown of it.

They work on the folder of the reader, as its own user, whether it runs or not. Names and subjects are a stranger's:
nothing of them reaches the terminal but letters. Imports of weight happen in the commands: --help answers at once.
"""
