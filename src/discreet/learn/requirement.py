"""Say what is missing, before anything else in this room is imported."""

from importlib.util import find_spec

from discreet.errors import MissingExtra

if find_spec("torch") is None:
    raise MissingExtra(room="discreet.learn", needs="torch", extra="learn")
