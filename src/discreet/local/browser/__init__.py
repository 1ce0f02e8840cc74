"""The device's side for browsers: ES modules to serve, which keep to the same laws and bytes."""

from discreet.local.browser.modules import MODULES, read_module

__all__ = ["MODULES", "read_module"]
