"""Prompt templates and their rendering; only ``agents`` imports this room. It holds no template
yet.
"""
