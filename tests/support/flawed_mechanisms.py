"""Mechanisms with a flaw and twins without it, one for each way in which outputs can tell."""

import math
from dataclasses import dataclass, field

import numpy as np

rng = np.random.default_rng()  # insecure noise is good enough to test an auditor with


@dataclass(frozen=True)
class Flaw:
    """A mechanism that breaks its claim on the pair, and a twin that keeps it."""

    broken: object
    sound: object
    pair: tuple = (0, 1)
    epsilon: float = 1
    delta: float = 0
    samples: int = 40_000
    marks: dict = field(default_factory=dict)


def laplace(shape, scale=1.0):
    return rng.laplace(scale=scale, size=shape)


def coin(n, p):
    return rng.random(n) < p


def vectors(scale, d=100):
    return lambda v, n: np.asarray(v) + laplace((n, d), scale)


def one_shift(d=100, at=17):
    a = np.zeros(d)
    b = a.copy()
    b[at] = 1
    return a, b


def texts(leak):
    def run(v, n):
        hit = coin(n, 0.9 if (v and leak) else 0.5)
        noise = rng.integers(0, 10**6, n)
        return [
            f"id {k:06d} {'granted' if h else 'refused'}" for k, h in zip(noise, hit, strict=True)
        ]

    return run


def keys(leak):
    def run(v, n):
        noise = laplace((n, 3))
        rows = []
        for row in noise.tolist():
            known = {"a": 5 + row[0], "b": 2 + row[1]}
            if v and leak:
                known["c"] = 1 + row[2]
            elif not leak:
                known["c"] = v + row[2]
            rows.append(known)
        return rows

    return run


def failing(leak):
    def run(v):
        if leak and v and rng.random() < 0.2:
            raise ValueError("a value of the data")
        return float(rng.laplace() + v)

    return run


def exclusive_or(leak):
    def run(v, n):
        x = rng.uniform(-1, 1, (n, 6))
        p = 0.9 if leak else 1 / (1 + math.exp(-1))
        same = coin(n, p if v else 1 - p)
        x[:, 3] = np.abs(x[:, 3]) * np.sign(x[:, 1]) * np.where(same, 1, -1)
        return x

    return run


def correlated(leak):
    def run(v, n):
        x = rng.normal(size=(n, 4))
        r = 0.95 if leak else 0.05
        x[:, 2] = r * (1 if v else -1) * x[:, 0] + math.sqrt(1 - r * r) * x[:, 2]
        return x

    return run


def parity(leak):
    def run(v, n):
        odd = coin(n, (0.9 if leak else 0.7) if v else (0.1 if leak else 0.3))
        return 2 * rng.integers(0, 10**7, n) + odd

    return run


def missing(leak):
    def run(v, n):
        x = laplace(n) + v
        x[coin(n, 0.1 if (leak and v) else 0.001)] = math.nan
        return x

    return run


def lengths(leak):
    def run(v, n):
        count = rng.geometric(0.3, n) + (3 * v if leak else 0)
        return [laplace(k).tolist() for k in count.tolist()]

    return run


def winners(leak):
    """Noisy max: the broken one returns the winning value as well."""

    def run(v, n):
        scores = np.asarray(v) + laplace((n, len(v)), 2)
        at = scores.argmax(axis=1)
        return np.stack([at, scores.max(axis=1)], axis=1) if leak else at

    return run


def responses(leak, k=10):
    def run(v, n):
        p = math.e / (1 + math.e) if leak else math.e / (math.e + k - 1)
        lie = (v + rng.integers(1, k, n)) % k
        return np.where(coin(n, p), v, lie)

    return run


def means(leak):
    """A mean over the exact count, or over a count that is released too."""

    def run(data, n):
        if leak:
            return (sum(data) + laplace(n)) / len(data)
        return (sum(data) + laplace(n, 2)) / np.maximum(len(data) + laplace(n, 2), 1)

    return run


def variances(leak):
    return lambda v, n: rng.laplace(scale=(3 if leak else 1.3) if v else 1, size=n)


def rare(leak):
    def run(v, n):
        return np.where(coin(n, 0.01 if leak else 1e-5), 100.0 + v, laplace(n))

    return run


def runs(leak):
    """Bits in a row, where only the longest run tells."""

    def run(v, n):
        bits = rng.integers(0, 2, (n, 24))
        start = rng.integers(0, 12, n)
        hit = coin(n, 0.9 if (leak and v) else 0.1 if leak else 0.5)
        for i in range(12):
            bits[np.flatnonzero(hit), start[hit] + i] = 1
        return bits

    return run


def sparse_vector(*, threshold, query, positives=None, numeric=False):
    """Yes where a noisy query passes a noisy threshold, NaN after the last positive allowed."""

    def run(queries, n):
        queries = np.asarray(queries, float)
        noisy = queries + (laplace((n, len(queries)), query) if query else 0.0)
        yes = noisy >= laplace((n, 1), threshold)
        answers = np.where(yes, noisy if numeric else 1.0, np.nan if numeric else 0.0)
        if positives is not None:
            before = np.cumsum(yes, axis=1) - yes
            answers[before >= positives] = np.nan
        return answers

    return run


def long(negatives, positives=1):
    return [0] * negatives + [1] * positives, [1] * negatives + [0] * positives


# The sparse vector technique at epsilon 1: as it should be, as printed, and as in [LSL17].
SOUND = sparse_vector(threshold=2, query=4, positives=1)
SPARSE_VECTORS = {
    "printed": Flaw(
        sparse_vector(threshold=2, query=4 / 3, positives=1), SOUND, pair=long(10), samples=200_000
    ),
    "algorithm 3": Flaw(
        sparse_vector(threshold=2, query=2, positives=1, numeric=True),
        SOUND,
        pair=long(5),
        samples=200_000,
    ),
    "algorithm 4": Flaw(
        sparse_vector(threshold=4, query=4 / 3, positives=3),
        SOUND,
        pair=long(8, 3),
        samples=200_000,
    ),
    "algorithm 5": Flaw(sparse_vector(threshold=2, query=0), SOUND, pair=long(1)),
    "algorithm 6": Flaw(sparse_vector(threshold=2, query=2), SOUND, pair=long(6, 6)),
}

FLAWS = {
    "laplace 30% short": Flaw(lambda v, n: v + laplace(n, 0.7), lambda v, n: v + laplace(n)),
    "vector, one shift": Flaw(vectors(0.75), vectors(1), pair=one_shift()),
    "text": Flaw(texts(True), texts(False), epsilon=0.3, samples=20_000),
    "keys": Flaw(keys(True), keys(False), samples=20_000),
    "failure": Flaw(failing(True), failing(False), samples=20_000, marks={"batch": False}),
    "exclusive or": Flaw(exclusive_or(True), exclusive_or(False), epsilon=2),
    "correlation": Flaw(correlated(True), correlated(False)),
    "parity": Flaw(parity(True), parity(False)),
    "missing": Flaw(missing(True), missing(False)),
    "length": Flaw(lengths(True), lengths(False), samples=20_000),
    "noisy max": Flaw(winners(True), winners(False), pair=([0.0] * 6, [1.0] * 6)),
    "k-ary response": Flaw(responses(True), responses(False)),
    "mean": Flaw(means(True), means(False), pair=([1], [1, 1])),
    "variance": Flaw(variances(True), variances(False)),
    "rare": Flaw(rare(True), rare(False), delta=1e-3),
    "runs": Flaw(runs(True), runs(False)),
    **SPARSE_VECTORS,
}
