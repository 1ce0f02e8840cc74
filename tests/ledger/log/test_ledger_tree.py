"""The tree is the one that RFC 6962 defines, and its proofs prove nothing else."""

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import TamperingFound
from discreet.ledger.log import tree as _tree
from discreet.ledger.verifier import (
    NotProven,
    check_consistency,
    check_inclusion,
    leaf_hash,
    node_hash,
)

# The test leaves that implementations of Certificate Transparency share, and their roots.
BODIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
INCLUSION = {
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): INCLUSION[0, 8],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}


# --- the definitions of RFC 6962, section 2.1, word for word and as slow as they are ---


def split(n):
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def slow_root(bodies):
    if not bodies:
        return sha256().digest()
    if len(bodies) == 1:
        return leaf_hash(bodies[0])
    k = split(len(bodies))
    return node_hash(slow_root(bodies[:k]), slow_root(bodies[k:]))


def slow_inclusion(m, bodies):
    if len(bodies) == 1:
        return []
    k = split(len(bodies))
    if m < k:
        return [*slow_inclusion(m, bodies[:k]), slow_root(bodies[k:])]
    return [*slow_inclusion(m - k, bodies[k:]), slow_root(bodies[:k])]


def slow_consistency(m, bodies, is_known=True):
    if m == len(bodies):
        return [] if is_known else [slow_root(bodies)]
    k = split(len(bodies))
    if m <= k:
        return [*slow_consistency(m, bodies[:k], is_known), slow_root(bodies[k:])]
    return [*slow_consistency(m - k, bodies[k:], False), slow_root(bodies[:k])]


# --- trees as the ledger keeps them ---


class Stored:
    """Rows as a store has them; refuses to make up what no row holds."""

    def __init__(self, bodies):
        self.rows, self.frontiers, self.reads = [], [b""], 0
        for size, body in enumerate(bodies):
            hashes, frontier = _tree.append(self.frontiers[-1], size, leaf_hash(body))
            self.rows.append(hashes)
            self.frontiers.append(frontier)

    def node(self, level, k):
        self.reads += 1
        found = self.rows[((k + 1) << level) - 1][32 * level : 32 * (level + 1)]
        assert len(found) == 32, (level, k)
        return found


def bodies_of(n):
    return [b"entry %d" % i for i in range(n)]


MANY = Stored(bodies_of(150))


def test_known_roots_and_proofs():
    log = Stored(BODIES)
    assert [_tree.root(frontier).hex() for frontier in log.frontiers] == ROOTS
    for (index, size), proof in INCLUSION.items():
        assert [h.hex() for h in _tree.inclusion(index, size, log.node)] == proof
    for (old, new), proof in CONSISTENCY.items():
        assert [h.hex() for h in _tree.consistency(old, new, log.node)] == proof
    for index, size in INCLUSION:
        proof = [bytes.fromhex(text) for text in INCLUSION[index, size]]
        check_inclusion(leaf_hash(BODIES[index]), index, size, proof, bytes.fromhex(ROOTS[size]))
    for old, new in CONSISTENCY:
        proof = [bytes.fromhex(text) for text in CONSISTENCY[old, new]]
        check_consistency(old, bytes.fromhex(ROOTS[old]), new, bytes.fromhex(ROOTS[new]), proof)


@pytest.mark.parametrize("size", range(34))
def test_all_small_trees_are_the_defined_ones(size):
    bodies = bodies_of(size)
    top = slow_root(bodies)
    assert _tree.root(MANY.frontiers[size]) == top
    for index in range(size):
        proof = _tree.inclusion(index, size, MANY.node)
        assert proof == slow_inclusion(index, bodies)
        check_inclusion(leaf_hash(bodies[index]), index, size, proof, top)
    for old in range(size + 1):
        proof = _tree.consistency(old, size, MANY.node)
        assert proof == (slow_consistency(old, bodies) if old else [])
        check_consistency(old, slow_root(bodies[:old]), size, top, proof)


@pytest.mark.lengthy
@given(st.data())
def test_any_proof_is_the_defined_one_and_any_change_breaks_it(data):
    size = data.draw(st.integers(1, 150))
    index = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(1, size))
    bodies, new_root = bodies_of(size), _tree.root(MANY.frontiers[size])
    leaf, old_root = leaf_hash(bodies[index]), _tree.root(MANY.frontiers[old])
    inclusion = _tree.inclusion(index, size, MANY.node)
    consistency = _tree.consistency(old, size, MANY.node)
    assert inclusion == slow_inclusion(index, bodies)
    assert consistency == slow_consistency(old, bodies)

    def changed(proof):
        at = data.draw(st.integers(0, 32 * len(proof) - 1))
        whole = bytearray(b"".join(proof))
        whole[at] ^= data.draw(st.integers(1, 255))
        return [bytes(whole[i : i + 32]) for i in range(0, len(whole), 32)]

    def refused(check, *arguments):
        with pytest.raises(NotProven):
            check(*arguments)

    for proof in [[*inclusion, bytes(32)], inclusion[:-1] if inclusion else [leaf]]:
        refused(check_inclusion, leaf, index, size, proof, new_root)
    if inclusion:
        refused(check_inclusion, leaf, index, size, changed(inclusion), new_root)
        cut = [inclusion[0][:31], *inclusion[1:]]
        refused(check_inclusion, leaf, index, size, cut, new_root)
    (other,) = changed([leaf])
    refused(check_inclusion, other, index, size, inclusion, new_root)
    wrong = data.draw(st.integers(-2, size + 2).filter(lambda i: i != index))
    refused(check_inclusion, leaf, wrong, size, inclusion, new_root)

    for proof in [[*consistency, bytes(32)], consistency[:-1] if consistency else [leaf]]:
        refused(check_consistency, old, old_root, size, new_root, proof)
    if consistency:
        refused(check_consistency, old, old_root, size, new_root, changed(consistency))
        refused(check_consistency, size, new_root, old, old_root, consistency)
    (other,) = changed([old_root])
    refused(check_consistency, old, other, size, new_root, consistency)
    (other,) = changed([new_root])
    refused(check_consistency, old, old_root, size, other, consistency)


def test_hashes_of_the_wrong_length_are_refused_even_where_they_join_to_the_same_bytes():
    a, b, c = (leaf_hash(body) for body in (b"a", b"b", b"c"))
    ab = node_hash(a, b)
    with pytest.raises(NotProven, match="right hashes"):
        check_inclusion(a + b[:1], 0, 2, [b[1:]], ab)
    with pytest.raises(NotProven):
        check_consistency(1, a + b[:1], 2, ab, [b[1:]])
    check_consistency(2, ab, 3, node_hash(ab, c), [c])


def test_absurd_sizes_are_refused():
    a = leaf_hash(b"a")
    for index, size in [(0, 0), (-1, 1), (1, 1), (0, 2**63), (2**70, 2**70 + 1)]:
        with pytest.raises(NotProven):
            check_inclusion(a, index, size, [], a)
    for old, new in [(-1, 1), (2, 1), (1, 2**63)]:
        with pytest.raises(NotProven):
            check_consistency(old, a, new, a, [])
    with pytest.raises(NotProven):
        check_consistency(0, a, 1, a, [])  # the empty tree has one root only
    for index, size in [(0, 0), (-1, 1), (1, 1)]:
        with pytest.raises(ValueError, match="entry of the tree"):
            _tree.inclusion(index, size, MANY.node)
    with pytest.raises(ValueError, match="smaller"):
        _tree.consistency(3, 2, MANY.node)


def test_the_bulk_tree_agrees_with_one_leaf_at_a_time_and_can_start_anywhere():
    for start in (0, 1, 6, 7, 64, 99):
        tree = _tree.Tree(MANY.frontiers[start], start)
        for size, body in enumerate(bodies_of(150)[start:], start):
            assert tree.frontier == MANY.frontiers[size]
            assert tree.add(leaf_hash(body)) == MANY.rows[size]
            assert tree.size == size + 1
            assert tree.root() == _tree.root(MANY.frontiers[size + 1])


def test_a_frontier_that_does_not_fit_is_tampering():
    for frontier, size in [(b"", 1), (bytes(32), 3), (bytes(31), 1), (bytes(64), 2)]:
        with pytest.raises(TamperingFound):
            _tree.append(frontier, size, bytes(32))
        with pytest.raises(TamperingFound):
            _tree.Tree(frontier, size)


@pytest.mark.lengthy
@settings(max_examples=200)
@given(st.integers(1, 1_000_000), st.data())
def test_a_proof_in_a_million_has_at_most_twenty_hashes(size, data):
    asked = []

    def node(level, k):
        assert (k + 1) << level <= size  # complete subtrees only
        asked.append((level, k))
        return bytes(32)

    index = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(0, size))
    assert len(_tree.inclusion(index, size, node)) <= 20
    assert len(asked) <= 40
    assert len(_tree.consistency(old, size, node)) <= 21  # may start with one more
