"""The desk: server-rendered pages where a person sees a proposal beside the message and decides.

A click writes a row; the worker acts on rows. Nothing here can reach the mover or apply.
"""
