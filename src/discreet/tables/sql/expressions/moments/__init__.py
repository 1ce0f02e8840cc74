"""Dates and timestamps: their parts, their formats, and how they move."""
