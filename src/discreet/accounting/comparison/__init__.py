"""Textbook accountants side by side, for teaching only."""
