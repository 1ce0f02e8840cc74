"""Charge, run, add noise, put on record: one question, many, or a watch."""
