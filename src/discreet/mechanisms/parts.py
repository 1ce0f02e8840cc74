"""Side door: what mechanisms are made of, for rooms that build mechanisms of their own.

``discreet.tables`` adds noise to whole tables and draws weighted quantiles with these.
"""

from discreet.mechanisms.selection.ranks import as_share
from discreet.mechanisms.selection.scores import worst_shortfall
from discreet.mechanisms.values.arrays import add_drawn, as_integers

__all__ = ["add_drawn", "as_integers", "as_share", "worst_shortfall"]
