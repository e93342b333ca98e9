"""The target ``cpu``: C compiled by the system compiler, run in processes of its own, checked and
timed in pairs.

``target`` judges; ``bench`` is a workload with its values and answers, ``memory`` what judge and
candidate share; ``worker`` starts and stops the processes (``worker.c`` is the one for C,
``library`` the one for Python libraries); ``check`` compares outputs. What `worker` measures is the
worker's own clock, and a candidate that attacks its worker is not held back: this judge is for
honest candidates that fail.
"""
