"""A hash tree over the stored state: a row that goes, changes or comes back from earlier shows.

The tree branches by the digits of the hash of a fact's name. A leaf holds what a few facts hash
to; a node that has grown too large becomes a branch of sixteen. Nodes are facts themselves, and
each is known by its hash from the one above it, so whoever knows the hash of the root can tell for
every name whether there is a fact and what it says, by reading a handful of nodes. The root is
sealed together with the end of the log (``writing/sealed.py``).
"""

from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final, final

from discreet.errors import TamperingFound

__all__ = ["EMPTY", "HASH", "NODES", "StateTree", "check_tree"]

NODES: Final = "tree/"  # what the names of its facts begin with
HASH: Final = 43  # characters of a hash in Base64
EMPTY: Final = "." * HASH  # stands for a node without facts, which is not stored
_LEAF, _BRANCH = "=", "+"
_NAME: Final = 32  # hexadecimal digits of a name's hash; a collision would be a false alarm
_ITEM: Final = _NAME + HASH
_MOST: Final = 12  # facts in a leaf: with more, SQLite would need a page for it alone
_DIGITS: Final = "0123456789abcdef"

Leaf = dict[str, str]  # hash of a fact by the hash of its name
Node = Leaf | list[str]  # or the hashes of sixteen nodes below it


def _hash(text: str) -> str:
    return b2a_base64(sha256(text.encode()).digest(), newline=False)[:HASH].decode()


@lru_cache(maxsize=65_536)
def _named(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:_NAME]


def _item(name: str, value: str) -> str:
    return _hash(f"{len(name)} {name}{value}")


@final
class StateTree:
    """The tree with a known root. ``read`` fetches facts by their names.

    >>> stored = {}
    >>> tree = StateTree(lambda names: {}, EMPTY)
    >>> tree.put({"budget/people/total": "3 0"})
    >>> stored |= tree.take()
    >>> again = StateTree(lambda names: {name: stored[name] for name in names}, tree.root)
    >>> again.check("budget/people/total", "3 0")
    >>> again.check("budget/people/total", None)
    Traceback (most recent call last):
        ...
    discreet.errors.TamperingFound: the stored budget state is not what was written last...
    """

    def __init__(self, read: Callable[[Sequence[str]], Mapping[str, str]], root: str) -> None:
        self._read = read
        self.root = root
        self._nodes: dict[str, Node] = {}
        self._changed: set[str] = set()

    @property
    def is_changed(self) -> bool:
        """Whether there is something to take."""
        return bool(self._changed)

    def check(self, name: str, value: str | None) -> None:
        """Raise unless this is what the fact says, or None where there is none."""
        digits = _named(name)
        _, leaf = self._leaf(digits)
        if leaf.get(digits) != (None if value is None else _item(name, value)):
            raise _altered(name.partition("/")[0])

    def put(self, facts: Mapping[str, str | None]) -> None:
        """Set facts, and remove those whose value is None."""
        for name, value in facts.items():
            digits = _named(name)
            path, leaf = self._leaf(digits)
            if value is None:
                leaf.pop(digits, None)
            else:
                leaf[digits] = _item(name, value)
            self._changed.add(path)
            if len(leaf) > _MOST:
                self._split(path, leaf)

    def take(self) -> dict[str, str | None]:
        """Hand out the nodes that changed, to be written; the root is the new one."""
        facts: dict[str, str | None] = {}
        for depth in range(max(map(len, self._changed), default=-1), -1, -1):
            for path in [one for one in self._changed if len(one) == depth]:
                facts[f"{NODES}{path}"] = self._settled(path)
        self._changed.clear()
        return facts

    def _settled(self, path: str) -> str | None:
        """Return the text of a node of which all below are settled, and let the one above know."""
        if self._nodes[path] == [EMPTY] * 16:
            self._nodes[path] = {}  # all of its facts are gone: a leaf again
        text = _written(self._nodes[path])
        known = EMPTY if text is None else _hash(text)
        if not path:
            self.root = known
            return text
        above = self._nodes[path[:-1]]
        assert isinstance(above, list)
        above[int(path[-1], 16)] = known
        self._changed.add(path[:-1])
        return text

    def _leaf(self, digits: str) -> tuple[str, Leaf]:
        """Return where a fact of this name is, or would be."""
        path, node = "", self._node("", self.root)
        while isinstance(node, list):
            digit = digits[len(path)]
            path += digit
            node = self._node(path, node[int(digit, 16)])
        return path, node

    def _node(self, path: str, expected: str) -> Node:
        known = self._nodes.get(path)
        if known is None:
            known = {} if expected == EMPTY else self._stored(path, expected)
            self._nodes[path] = known
        return known

    def _stored(self, path: str, expected: str) -> Node:
        name = f"{NODES}{path}"
        text = self._read([name]).get(name)
        if type(text) is not str or _hash(text) != expected:
            raise _altered("tree")
        return _parsed(text)

    def _split(self, path: str, leaf: Leaf) -> None:
        """Make a branch of a leaf with too many facts."""
        for digit in _DIGITS:
            below = {name: item for name, item in leaf.items() if name[len(path)] == digit}
            self._nodes[path + digit] = below
            if below:
                self._changed.add(path + digit)
            if len(below) > _MOST:
                self._split(path + digit, below)
        self._nodes[path] = [EMPTY] * 16


def _written(node: Node) -> str | None:
    if isinstance(node, list):
        return _BRANCH + "".join(node)
    items = sorted(node.items())
    return _LEAF + "".join([name + item for name, item in items]) if items else None


def _parsed(text: str) -> Node:
    """Read a node whose hash was right, so that we have written it."""
    body = text[1:]
    if text[0] == _BRANCH:
        return [body[at : at + HASH] for at in range(0, len(body), HASH)]
    items = [body[at : at + _ITEM] for at in range(0, len(body), _ITEM)]
    return {item[:_NAME]: item[_NAME:] for item in items}


def _altered(kind: str) -> TamperingFound:
    return TamperingFound(
        f"the stored {kind} state is not what was written last. Nothing was written. Find out what "
        "was altered with: discreet ledger verify"
    )


def check_tree(facts: Mapping[str, str], nodes: Mapping[str, str], root: str) -> None:
    """Raise unless these nodes, and no others, are a tree with this root over these facts."""
    tree = StateTree(lambda names: {name: nodes[name] for name in names if name in nodes}, root)
    for name, value in facts.items():
        tree.check(name, value)
    # Every fact was found in its leaf, so nodes with more in them, or nodes that no fact leads
    # to, are somebody else's.
    leaves = [node for node in tree._nodes.values() if isinstance(node, dict)]
    stored = {f"{NODES}{path}" for path, node in tree._nodes.items() if node}
    if sum(map(len, leaves)) != len(facts) or stored != nodes.keys():
        raise _altered("tree")
