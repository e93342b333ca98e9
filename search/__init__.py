"""Searching: drivers that propose, the campaign loop that asks, judges, records and tells, its
store, and what it reports.

Start reading at ``campaign.py``. This room never imports ``agents``: it defines the `Driver`
protocol that they implement.
"""
