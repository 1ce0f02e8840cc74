"""Carry out a priced question: choose limits, aggregate, draw, add noise. It is paid before."""
