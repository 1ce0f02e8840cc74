"""Renyi divergences, their sampling, and their conversion."""
