"""Draw who sees what in each model of trust, as SVG inside the page of the course.

Lines and letters take the colour of the text around them: one drawing for light and dark pages.
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

PAGE = Path(__file__).parent / "course/trust-models.md"
WIDE, HIGH, GAP = 168, 64, 64
TOP, LEFT = 34, 12
NOISE, TRUST = "#d9731a", "#3d84c6"  # seen on white and on black
EDGES = {
    "": 'stroke="currentColor"',
    "in part": f'stroke="{TRUST}" stroke-width="3" stroke-dasharray="7 5"',
    "with records": f'stroke="{TRUST}" stroke-width="3"',
}


@dataclass(frozen=True)
class Party:
    """One box: a name, what it does, what it sees, and how far it must be trusted."""

    name: str
    does: str
    sees: str
    adds_noise: bool = False
    trust: Literal["", "in part", "with records"] = ""


@dataclass(frozen=True)
class Diagram:
    """Parties from left to right, and what travels between them."""

    title: str
    parties: tuple[Party, ...]
    sent: tuple[str, ...]

    def svg(self) -> str:
        """Return the drawing, as lines without a blank one, which would end it in Markdown."""
        wide = 2 * LEFT + len(self.parties) * WIDE + (len(self.parties) - 1) * GAP
        boxes = [_box(place, party) for place, party in enumerate(self.parties)]
        arrows = [_arrow(place, what) for place, what in enumerate(self.sent)]
        lines = [line for part in (*boxes, *arrows) for line in part]
        head = (
            f'<svg viewBox="0 0 {wide} 168" width="{wide}" role="img" '
            f'aria-label="{escape(self.title)}" '
            f'style="width:100%;min-width:32rem;max-width:{wide}px;height:auto" '
            'font-family="inherit" fill="currentColor" text-anchor="middle">'
        )
        # On a phone it scrolls inside the page, with keys as well.
        outside = f'<figure style="overflow-x:auto" tabindex="0" aria-label="{escape(self.title)}">'
        return "\n".join([outside, head, *lines, "</svg>", "</figure>"])


def _left(place: int) -> int:
    return LEFT + place * (WIDE + GAP)


def _box(place: int, party: Party) -> list[str]:
    left = _left(place)
    middle = left + WIDE // 2
    edge = EDGES[party.trust]
    lines = [
        f'<rect x="{left}" y="{TOP}" width="{WIDE}" height="{HIGH}" rx="8" fill="none" {edge}/>',
        _text(middle, TOP + 29, party.name, 'font-size="15" font-weight="600"'),
        _text(middle, TOP + 48, party.does, 'font-size="12"'),
        _text(middle, TOP + HIGH + 24, "sees", 'font-size="11" opacity="0.7"'),
    ]
    for row, line in enumerate(party.sees.split("|")):
        lines.append(_text(middle, TOP + HIGH + 42 + 16 * row, line, 'font-size="12"'))
    if party.adds_noise:
        lines += [
            f'<rect x="{middle - 40}" y="{TOP - 16}" width="80" height="24" rx="12" '
            f'fill="{NOISE}"/>',
            _text(middle, TOP, "+ noise", 'font-size="12" font-weight="600" fill="#000"'),
        ]
    return lines


def _arrow(place: int, what: str) -> list[str]:
    start, end, y = _left(place) + WIDE + 4, _left(place + 1) - 4, TOP + HIGH // 2
    middle = (start + end) // 2
    lines = [
        f'<path d="M{start} {y}H{end - 6}" stroke="currentColor" fill="none"/>',
        f'<path d="M{end} {y}l-9 -4.5v9z"/>',
    ]
    for row, line in enumerate(reversed(what.split("|"))):
        lines.append(_text(middle, y - 8 - 12 * row, line, 'font-size="11"'))
    return lines


def _text(x: int, y: int, text: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'


PEOPLE = Party("people", "hand in their records", "their own record")
READERS = Party("readers", "anybody", "noisy answers")
DIAGRAMS = {
    "central": Diagram(
        "Central: a trusted curator holds the records and adds noise to answers",
        (
            PEOPLE,
            Party("curator", "holds the data", "every record",
                  adds_noise=True, trust="with records"),
            READERS,
        ),
        ("records", "answers"),
    ),
    "local": Diagram(
        "Local: each device adds noise before anything leaves it",
        (
            Party("people", "on their own device", "their own record", adds_noise=True),
            Party("collector", "adds up", "one noisy report|of each person"),
            Party("readers", "anybody", "estimates"),
        ),
        ("reports", "estimates"),
    ),
    "shuffle": Diagram(
        "Shuffle: devices add a little noise, a shuffler hides who sent what",
        (
            Party("people", "on their own device", "their own record", adds_noise=True),
            Party("shuffler", "mixes sealed reports", "who sent,|not what", trust="in part"),
            Party("collector", "opens and adds up", "noisy reports,|not whose"),
            Party("readers", "anybody", "estimates"),
        ),
        ("sealed|reports", "mixed", "estimates"),
    ),
    "pan-private": Diagram(
        "Pan-private: what the curator keeps between events is noisy as well",
        (
            Party("people", "events, one at a time", "their own events"),
            Party("curator", "keeps a noisy state", "each event, once;|an intruder: noise",
                  adds_noise=True, trust="in part"),
            Party("readers", "anybody", "noisy answers"),
        ),
        ("read once", "answers"),
    ),
    "federated": Diagram(
        "Federated: data stays where it is, and only sums of updates leave",
        (
            Party("participants", "train on their own data", "their own data"),
            Party("coordinator", "adds up, adds noise", "updates, or only|their sum",
                  adds_noise=True, trust="in part"),
            Party("readers", "anybody with the model", "a noisy model"),
        ),
        ("updates", "model"),
    ),
}  # fmt: skip


def page(text: str) -> str:
    """Return the page with its drawings made anew."""
    for name, diagram in DIAGRAMS.items():
        before, after = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        head, rest = text.split(before)
        text = head + before + diagram.svg() + "\n" + after + rest.split(after)[1]
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
