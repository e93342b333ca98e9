"""A campaign as tools for somebody else's program: candidates come from outside, everything else
(judge, budget, record, claims) is that of any campaign.

``session.py`` runs the campaign, ``desk.py`` holds the tools as plain functions from arguments to
JSON, ``tool.py`` describes and calls them, ``protocol.py`` offers them over the Model Context
Protocol and is imported by whoever serves.
"""
