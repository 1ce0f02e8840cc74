"""Which outputs each value owns, by the definitions in papers and not by the code under test."""

from itertools import combinations, product

import numpy as np
from scipy.linalg import hadamard

from discreet import local
from discreet.local.frequencies.public_hashing import POLYNOMIALS


def owned(randomiser):
    """Return who owns what, one row a value and one column an output."""
    return _OWNED[type(randomiser)](randomiser)


def numbered(randomiser, reports):
    """Return the columns of reports."""
    if isinstance(randomiser, local.SubsetSelection):
        places = {sum(1 << v for v in chosen): i for i, chosen in enumerate(subsets(randomiser))}
        return np.array([places[int.from_bytes(row.tobytes(), "little")] for row in reports])
    return np.asarray(reports)


def reported(randomiser, columns):
    """Return the reports of columns."""
    if not isinstance(randomiser, local.SubsetSelection):
        return np.asarray(columns)
    rows = np.zeros((len(subsets(randomiser)), -(-randomiser.domain // 8) * 8), dtype=np.uint8)
    for row, chosen in zip(rows, subsets(randomiser), strict=True):
        row[list(chosen)] = 1
    return np.packbits(rows, axis=1, bitorder="little")[columns]


def subsets(randomiser):
    return list(combinations(range(randomiser.domain), randomiser.size))


def bit_rows(domain):
    """Return all rows of bits."""
    return np.array(list(product((0, 1), repeat=domain)), dtype=np.uint8)


def _direct(randomiser):
    return np.eye(randomiser.domain, dtype=bool)


def _hadamard(randomiser):
    signs = hadamard(randomiser.size)[: randomiser.domain]
    return np.stack([signs == 1, signs == -1], axis=2).reshape(randomiser.domain, -1)


def _subset(randomiser):
    sets = subsets(randomiser)
    return np.array([[value in chosen for chosen in sets] for value in range(randomiser.domain)])


def _local_hashing(randomiser):
    family = randomiser.family
    a, b, cell = np.meshgrid(
        np.arange(1 << family.word_bits),
        np.arange(1 << family.word_bits),
        np.arange(family.cells),
        indexing="ij",
    )
    rows = []
    for value in range(randomiser.domain):
        hashed = (a * value + b) % 2**family.word_bits // 2 ** (family.word_bits - family.hash_bits)
        rows.append((hashed * family.cells // 2**family.hash_bits == cell).ravel())
    return np.array(rows)


def times(a, b, degree):
    """Multiply in the field of 2**degree elements, by the school's method."""
    modulus, result = 1 << degree | POLYNOMIALS[degree - 1], 0
    for bit in range(degree):
        result ^= (b >> bit & 1) * (a << bit)
    for bit in reversed(range(degree, 2 * degree)):
        result ^= (result >> bit & 1) * (modulus << (bit - degree))
    return result


def _public_hashing(randomiser):
    degree, bits = randomiser.degree, (randomiser.cells - 1).bit_length()
    rows = []
    for value in range(randomiser.domain):
        cells = [
            sum(((times(1 << i, a, degree) & value).bit_count() & 1) << i for i in range(bits))
            for a in range(1 << degree)
        ]
        rows.append((np.array(cells)[:, None] == np.arange(randomiser.cells)).ravel())
    return np.array(rows)


def _projective(randomiser):
    prime, places = randomiser.forms.prime, randomiser.forms.places
    vectors = [v[::-1] for v in product(range(prime), repeat=places)]  # the first digit lowest
    forms = [v for v in vectors if any(v) and [digit for digit in v if digit][-1] == 1]
    at = np.array(vectors[: randomiser.domain]) @ np.array(forms).T % prime
    return (at[:, :, None] == np.arange(prime)).reshape(randomiser.domain, -1)


_OWNED = {
    local.DirectResponse: _direct,
    local.HadamardResponse: _hadamard,
    local.SubsetSelection: _subset,
    local.LocalHashing: _local_hashing,
    local.PublicHashing: _public_hashing,
    local.ProjectiveResponse: _projective,
}
