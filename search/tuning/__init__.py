"""The tuning cache: what was judged once, kept on disk, and served where it still holds.

``key`` says what a time depends on, ``identity`` what a candidate means, ``cache`` keeps records in
one file a key, ``serving`` is a campaign's view of one file, ``near`` finds trials of like keys,
``rows`` are the shape → configuration table.
"""
