"""Prompt templates and their rendering; only ``agents`` imports this room."""
