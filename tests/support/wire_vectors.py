"""Test vectors of the wire format: run this file to write them anew, in a browser.

A vector says which words and which token a device drew, and which bytes it sent. Both sides are
held to them: the browser makes the bytes, Python reads and encodes them.
"""

import hashlib
import json
import struct
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from discreet import local
from discreet.local.frequencies.hashing import LocalHashing
from discreet.local.frequencies.projective import ProjectiveResponse
from discreet.local.frequencies.public_hashing import PublicHashing
from discreet.local.frequencies.subset import SubsetSelection
from discreet.local.frequencies.unary import OptimizedUnary, SymmetricUnary
from discreet.local.wire import parameters_of, sort_out

VECTORS = Path(__file__).parents[1] / "local" / "wire" / "vectors.json"
WORDS = 120  # enough for each vector

# A fresh module, whose randomness is what the vector says; what it makes is returned in hex.
MAKE = """async ({ module, parameters, value, words, token }) => {
  const hex = (bytes) => [...bytes].map((one) => one.toString(16).padStart(2, "0")).join("");
  const kept = crypto.getRandomValues;
  crypto.getRandomValues = (array) => {
    if (array instanceof Uint32Array) return array.fill(0), array.set(words), array;
    return array.set(token.match(/../g).map((pair) => parseInt(pair, 16))), array;
  };
  try {
    const { simulate } = await import(`/${module}?${Math.random()}`);
    return hex((await simulate(parameters))(value));
  } finally {
    crypto.getRandomValues = kept;
  }
}"""

RANDOMISERS = [
    (local.DirectResponse(domain=3, epsilon=1), 2),
    (local.DirectResponse(domain=1000, epsilon=Fraction(1, 3)), 999),
    (local.HadamardResponse(domain=1_000_000, epsilon=2), 123_456),
    (SymmetricUnary(domain=12, epsilon=1), 9),
    (OptimizedUnary(domain=16, epsilon=1), 15),
    (PublicHashing(domain=1000, epsilon=2), 777),
    (LocalHashing(domain=2**24, epsilon=2), 7_654_321),
    (ProjectiveResponse(domain=1000, epsilon=2), 888),
    (SubsetSelection(domain=12, epsilon=1), 11),
    (local.RepeatedDirect(domain=1000, epsilon=2, first=1), 500),
    (local.RepeatedUnary(domain=12, epsilon=2, first=1, optimized=True), 3),
]


class Bytes:
    """A source that gives what it was given, and no more."""

    is_secure = False

    def __init__(self, given: bytes) -> None:
        self.left = given

    def read(self, n: int, /) -> bytes:
        assert n <= len(self.left)
        drawn, self.left = self.left[:n], self.left[n:]
        return drawn


def drawn(what: str, count: int) -> bytes:
    return hashlib.shake_256(what.encode()).digest(count)


def make(page):
    for i, (randomiser, value) in enumerate(RANDOMISERS):
        labels = [f"„{one}“" for one in range(3)] if i == 0 else None
        window = {"not_after": datetime(2031, 1, 1, tzinfo=UTC)} if i == 0 else {}
        parameters = parameters_of(
            randomiser,
            name='Größe/size \\ "🚲"\n',
            a_day=2,
            lifetime=Fraction(61, 2),
            values=labels,
            source=Bytes(drawn(f"collection {i}", 8)),
            **window,
        )
        given = {
            "parameters": parameters.document,
            "value": value,
            "words": list(struct.unpack(f"<{WORDS}I", drawn(f"words {i}", 4 * WORDS))),
            "token": drawn(f"token {i}", 16).hex(),
        }
        sent = page.evaluate(MAKE, given | {"module": "discreet-local.js"})
        read = sort_out(parameters, [bytes.fromhex(sent)])
        yield {
            "parameters": given["parameters"],
            "canonical": parameters.canonical.decode(),
            "digest": parameters.digest.hex(),
            "value": value,
            "words": given["words"],
            "token": given["token"],
            "report": read.reports[0].tolist(),
            "bytes": sent,
        }


def main() -> None:
    from device_sites import device_site
    from playwright.sync_api import sync_playwright

    with device_site() as site, sync_playwright() as playwright:
        site.use("discreet-local.js")
        options = {"executable_path": "/usr/bin/chromium", "args": ["--no-sandbox"]}
        page = playwright.chromium.launch(**options).new_page()
        page.goto(site.address)
        lines = [json.dumps(one, ensure_ascii=False) for one in make(page)]
    VECTORS.write_text('{"version": 1, "reports": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
