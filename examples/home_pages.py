"""Which home pages do browsers have, if nobody may learn anybody's? Their addresses are any texts.

RAPPOR reads Bloom filters and needs candidates: what is in no list is not found. Prefix extension
needs none, and finds fewer. Each device is asked three times here, to compare the ways; choose one.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import local

DEVICES, EPSILON, CONFIDENCE = 300_000, 4, 0.95
LENGTH = 10  # bytes of an address that the ways without candidates look at
NEW = "fresh.test"  # popular of late, and in no list
KEY = b"home pages, first collection"  # public: which hash functions devices use
SHOWN = 10


def addresses() -> list[str]:
    """Return made-up addresses of pages, in any order."""
    found = [f"{''.join(parts)}.test" for parts in product("bdfgklmnps", "aeiou", "bdklmnrstx")]
    return list(np.random.default_rng(2026).permutation(found))


def home_pages(pages: Sequence[str]) -> npt.NDArray[Any]:
    """Return every device's page: of the usual law of ranks, a new one, or one's own."""
    dice = np.random.default_rng(2026)  # the people, not the coins
    ranks = 1 / np.arange(1, len(pages) + 1)
    usual = np.array(pages)[dice.choice(len(pages), size=DEVICES, p=ranks / ranks.sum())]
    kind = dice.random(DEVICES)
    own = np.array([f"~{number:x}.test" for number in range(DEVICES)])
    return np.where(kind < 0.05, NEW, np.where(kind < 0.25, own, usual))


def told(page: str, found: local.StringEstimate) -> str:
    """Return what was estimated of a page, or that it was not found."""
    if page not in found.strings:
        return f"{'not found':>19}"
    at = found.strings.index(page)
    return f"{found.counts[at]:>11,.0f} ± {2 * found.standard_error[at]:<5,.0f}"


def compare(truth: dict[str, int], ways: dict[str, local.StringEstimate]) -> None:
    """Print what each way says of the most frequent pages, what it found, and what it missed."""
    often = sorted(truth, key=lambda page: -truth[page])
    print(f"{'':12}{'true':>9}{''.join(f'{way:>19}' for way in ways)}".rstrip())
    for page in often[:SHOWN]:
        row = "".join(told(page, found) for found in ways.values())
        print(f"{page:12}{truth[page]:>9,}{row}".rstrip())
    print(f"\nFound with {CONFIDENCE:.0%} confidence, and the most frequent page of those missed:")
    for way, found in ways.items():
        wrong = sum(page not in truth for page in found.strings)
        missed = next(page for page in often if page not in found.strings)
        print(
            f"  {way:18}{len(found.strings):3} pages, {wrong} of them nobody's; missed: "
            f"{missed}, {100 * truth[missed] / DEVICES:.1f} %"
        )


def show_tree(levels: Sequence[local.StringEstimate]) -> None:
    """Print which beginnings are surely there, a letter longer from line to line."""
    print("\nBeginnings that are surely there, by the tree:")
    for level, found in enumerate(levels, start=1):
        shown = " ".join(sorted(found.strings))
        more = "…" if len(shown) > 56 else ""
        print(f"  {level:2} letters, {len(found.strings):3}: {shown[:56]}{more}")


def main() -> None:
    """Ask in three ways, and say what is found for sure and what is missed."""
    pages = addresses()
    known = pages[: len(pages) // 2]  # the other half of the list is nobody's home page
    values = home_pages(known)
    print(f"{DEVICES:,} devices, epsilon {EPSILON} each time they are asked.\n")

    rappor = local.Rappor(bits=128, hashes=2, cohorts=32, epsilon=EPSILON, key=KEY)
    reports = rappor.release(values)
    listed = rappor.estimate(reports, pages).found(confidence=CONFIDENCE)
    hunt = local.HeavyHitters(
        length=LENGTH, steps=LENGTH, epsilon=EPSILON, key=KEY, functions=256, keep=48
    )
    hunted = hunt.estimate(hunt.release(values)).found(confidence=CONFIDENCE)
    # What was found elsewhere is one more candidate for the reports that are there already.
    new = [page for page in hunted.strings if page not in pages]
    again = rappor.estimate(reports, [*pages, *new]).found(confidence=CONFIDENCE)

    truth = Counter(values.tolist())
    compare(truth, {"RAPPOR, a list": listed, "extension, no list": hunted, "RAPPOR again": again})
    print(f"\n{NEW} is in no list, and RAPPOR found it only when asked again.")

    tree = local.PrefixTree(length=LENGTH, levels=LENGTH, epsilon=EPSILON, key=KEY)
    show_tree(tree.estimate(tree.release(values), confidence=CONFIDENCE))
    alone = sum(count == 1 for count in truth.values())
    print(f"\n{alone:,} pages that one device has each are missed by all: that is the promise.")


if __name__ == "__main__":
    main()
