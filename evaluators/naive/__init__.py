"""A kernel evaluator that makes every published mistake, on purpose, inside a closed room.

It is the control of the exploit zoo: an exploit that does not deceive it proves nothing about a
judge that withstands it.
"""
