"""The example of one's own kernel: a campaign that runs as it is, and what ``init`` copies under
another name.
"""
