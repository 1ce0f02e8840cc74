"""Demo data, generated on the spot: people, salaries, visits, digits, voters, ratings, points.

Every table is a plain dict of equally long numpy arrays, the same on every machine for the same
arguments. No person in it exists. :func:`folder` finds real data that you bring yourself.
"""

from discreet.datasets._census import census, census_places
from discreet.datasets._clusters import clusters
from discreet.datasets._digits import digits
from discreet.datasets._folder import folder
from discreet.datasets._ratings import ratings
from discreet.datasets._salaries import salaries
from discreet.datasets._visits import VisitEvent, visits
from discreet.datasets._voters import voters

__all__ = [
    "VisitEvent",
    "census",
    "census_places",
    "clusters",
    "digits",
    "folder",
    "ratings",
    "salaries",
    "visits",
    "voters",
]
