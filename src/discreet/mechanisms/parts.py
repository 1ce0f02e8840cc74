"""Side door: what mechanisms are made of, for rooms that build mechanisms of their own.

``discreet.tables`` adds noise to whole tables and draws weighted quantiles with these.
"""

from discreet.mechanisms.selection.ranks import as_share
from discreet.mechanisms.selection.scores import worst_shortfall
from discreet.mechanisms.values.arrays import as_integers, saturating_add

__all__ = ["as_integers", "as_share", "saturating_add", "worst_shortfall"]
