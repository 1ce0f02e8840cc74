"""The command line: ``discreet demo``, ``explain``, ``epsilon``, ``ledger``, ``verify`` and more.

``discreet --help`` lists every command; each one's help teaches it by example.
"""

from discreet.cli.app import app, main

__all__ = ["app", "main"]
