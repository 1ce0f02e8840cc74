"""Shuffler and analyser as processes, over HTTP: the side door that needs the extra ``serve``."""

from discreet.shuffle.requirement import *  # noqa: F403  # before anything that needs it
from discreet.shuffle.running.application import create_shuffler_app
from discreet.shuffle.running.fetching import fetch
from discreet.shuffle.running.sending import Delivery, deliver
from discreet.shuffle.running.serving import serve_shuffler

__all__ = ["Delivery", "create_shuffler_app", "deliver", "fetch", "serve_shuffler"]
