"""A kernel evaluator that makes every published mistake, on purpose, inside a closed room.

It is the control of the exploit zoo: an exploit that does not deceive it proves nothing about a
judge that withstands it. Under ``profile: naive`` it judges whole campaigns.
"""

from __future__ import annotations

# The profile by which a campaign asks for it, the clock of its measurements, and what every report
# of such a campaign says first.
NAIVE_PROFILE = "naive"
NAIVE_CLOCK = "candidate-process"
NAIVE_WARNING = "judged by the naive profile: nothing here is a claim to believe"
