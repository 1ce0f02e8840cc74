"""Everything that an output is looked at for."""

from discreet.audit.outputs import Reader
from discreet.audit.scores.discriminants import linear_score, quadratic_scores
from discreet.audit.scores.features import Feature, plain_features, spread_features
from discreet.audit.scores.learned import Sides, additive_scores, rate, tables_of_two
from discreet.audit.scores.residues import residue_features
from discreet.audit.scores.vectors import vector_features

__all__ = ["propose"]


def propose(reader: Reader, known: Sides, pair: tuple[object, object]) -> list[Feature]:
    """Return the features that compete, the learned ones learned from ``known``."""
    features = plain_features(reader)
    features += spread_features(reader, known)
    features += vector_features(reader, pair)
    features += residue_features(reader, known[0])
    rated = [rate(feature, known) for feature in features]
    learned = additive_scores(rated) + tables_of_two(rated, known)
    linear = linear_score(reader, known)
    if linear is not None and len(reader.items) > 1:
        learned.append(linear)
    return features + learned + quadratic_scores(reader, known)
