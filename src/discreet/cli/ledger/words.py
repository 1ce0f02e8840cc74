"""Entries and losses in words."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote


def about(entry: Mapping[str, Any]) -> str:
    """Say in words what an entry did.

    >>> about({"kind": "spend", "job": 5, "steps": [10]})
    '10 steps of job 5'
    >>> about({"kind": "charge", "loss": {"kind": "laplace", "noise_multiplier": 2, "version": 1}})
    'laplace, noise multiplier 2'
    >>> about({"kind": "act", "act": "key.revoked", "subject": "ana-2", "reason": "lost"})
    'key.revoked ana-2: lost'
    """
    kind = entry["kind"]
    if "loss" in entry:
        return loss_words(entry["loss"])
    if kind == "spend":
        return f"{counted(sum(entry['steps']), 'step', 'steps')} of job {entry['job']}"
    if kind in ("account", "budget", "grant"):
        settings = entry["filter"]
        limit = f"epsilon {_number(settings['epsilon'])}, delta {_number(settings['delta'])}"
        why = f": {entry['reason']}" if "reason" in entry else _although(entry)
        return f"{unquote(entry.get('line', 'total'))}, {limit}{why}"
    told = {
        "settle": "job {job} ended",
        "release": "answer to charge {charge}",
        "reask": "answer of entry {release} again",
        "ledger": "the ledger {origin}",
        "clock": "the clock is confirmed",
        "rotate": "a new key signs",
        "withdraw": "the account is withdrawn: {reason}",
    }
    if kind in ("act", "policy"):
        done = "{act} {subject}" if kind == "act" else "the policy is {policy}"
        return done.format(**entry) + (f": {entry['reason']}" if "reason" in entry else "")
    if kind == "source":
        source = entry["source"]
        return f"{source['name']}, version {source['version']}{_although(entry)}"
    if kind == "witness":
        return f"cosigned by {entry['vkey'].partition('+')[0]}"
    return told.get(kind, "").format(**entry)


def _although(entry: Mapping[str, Any]) -> str:
    """Say why data was registered that looks like the data of others."""
    like = f" it is like that of {', '.join(entry['matches'])}" if "matches" in entry else ""
    return f", although{like}: {entry['override']}" if "override" in entry else ""


def loss_words(loss: Any) -> str:
    """Say in words what was paid.

    >>> loss_words({"kind": "composed", "parts": [[{"kind": "pure", "epsilon": "1/3"}, 3]]})
    '3 x pure, epsilon 0.3333'
    """
    if not isinstance(loss, dict):
        return str(loss)
    if loss.get("kind") == "composed":
        return "; ".join(
            f"{times} x {loss_words(part)}" if times != 1 else loss_words(part)
            for part, times in loss["parts"]
        )
    words = [str(loss.get("kind", "")).replace("_", " ")]
    for name, value in loss.items():
        if name not in ("kind", "version") and not isinstance(value, dict | list):
            words.append(f"{name.replace('_', ' ')} {_readable(value)}")
    inner = [loss_words(value) for value in loss.values() if isinstance(value, dict)]
    return ", ".join(words) + "".join(f", of {one}" for one in inner)


def _readable(value: object) -> str:
    """Write a member of a loss; an exact fraction as people read numbers."""
    return _number(value) if re.fullmatch(r"-?\d+/\d+", str(value)) else str(value)


def asked_words(asked: Mapping[str, Any]) -> str:
    """Say what was asked and at which price.

    >>> asked_words({"epsilon": 0.5, "delta": 0, "question": "SELECT COUNT(*) FROM people"})
    'epsilon 0.5: SELECT COUNT(*) FROM people'
    """
    delta = f", delta {asked['delta']:.3g}" if asked.get("delta") else ""
    return f"epsilon {asked['epsilon']:.4g}{delta}: {' '.join(asked['question'].split())}"


def _number(text: object) -> str:
    """Write an exact number that an entry holds as people type it."""
    top, _, bottom = str(text).partition("/")
    try:
        return f"{int(top) / int(bottom or 1):.4g}"
    except (OverflowError, ValueError):
        return str(text)


def counted(count: int, one: str, many: str) -> str:
    """Say how many there are.

    >>> counted(1, "entry", "entries"), counted(2000, "entry", "entries")
    ('1 entry', '2,000 entries')
    """
    return f"{count:,} {one if count == 1 else many}"
