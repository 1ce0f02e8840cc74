"""The command line: ``discreet demo``, ``discreet explain``."""

from discreet.cli._app import app, main

__all__ = ["app", "main"]
