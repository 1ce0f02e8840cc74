"""A log with a release, rotations and a witness, and the receipts that it gives."""

import base64
import hashlib
import json

from discreet.ledger.log import tree as _tree
from discreet.ledger.log.keys import SigningKey, WitnessKey
from discreet.ledger.log.notes import add_signature, cosign, sign_checkpoint
from discreet.ledger.verifier import check_receipt, leaf_hash, rotation_text

ORIGIN = "example.com/ledger"
ANSWER = b'{"mean":41.5}'
TIME = "2026-11-15T13:20:00.123456Z"


class Log:
    """A ledger boiled down to what receipts are made of."""

    def __init__(self):
        self.key = self.first = SigningKey.generate(ORIGIN)
        self.bodies, self.rows, self.frontier = [], [], b""
        self.append("ledger", origin=ORIGIN, vkey=self.key.vkey, format=1)

    def append(self, kind, **fields):
        index = len(self.bodies)
        entry = {"index": index, "kind": kind, "time": TIME, **fields}
        self.bodies.append(json.dumps(entry, sort_keys=True, separators=(",", ":")))
        hashes, self.frontier = _tree.append(
            self.frontier, index, leaf_hash(self.bodies[-1].encode())
        )
        self.rows.append(hashes)
        return index

    def rotate(self):
        old, new, index = self.key, self.key.rotated(), len(self.bodies)
        told = rotation_text(ORIGIN, index, new.vkey)
        by_old, by_new = (base64.b64encode(k.sign(told)).decode() for k in (old, new))
        self.key = new
        return self.append("rotate", vkey=new.vkey, by_old=by_old, by_new=by_new)

    def node(self, level, k):
        return self.rows[((k + 1) << level) - 1][32 * level : 32 * (level + 1)]

    def note(self):
        return sign_checkpoint(self.key, len(self.bodies), _tree.root(self.frontier))

    def shown(self, index):
        proof = _tree.inclusion(index, len(self.bodies), self.node)
        hashes = [base64.b64encode(item).decode() for item in proof]
        return {"index": index, "body": self.bodies[index], "proof": hashes}

    def receipt(self, *indices, rotations=(), note=None):
        return {
            "format": "discreet-receipt/1",
            "checkpoint": note or self.note(),
            "entries": [self.shown(index) for index in indices],
            "rotations": [self.shown(index) for index in rotations],
        }


class Case:
    """A log with one release, two rotations and a witness."""

    def __init__(self):
        self.log = log = Log()
        self.rotations = [log.rotate()]
        facts = {"account": "salaries", "who": "ana", "purpose": "report"}
        self.charge = log.append("charge", **facts, loss={"epsilon": 1, "kind": "pure"})
        self.release = log.append(
            "release",
            account="salaries",
            charge=self.charge,
            answer=hashlib.sha256(ANSWER).hexdigest(),
        )
        for n in range(5):
            log.append("charge", account="other", who=f"analyst {n}", loss={"epsilon": n})
        self.middle = log.key
        self.rotations.append(log.rotate())
        self.witness = WitnessKey.generate("witness.example/w1")
        note = log.note()
        self.note = add_signature(note, cosign(self.witness, note, 1_679_315_147))
        self.receipt = log.receipt(
            self.charge, self.release, rotations=self.rotations, note=self.note
        )

    def check(self, *receipt, **changes):
        document = json.dumps(*(receipt or [self.receipt]))
        options = {"answer": ANSWER, "witnesses": [self.witness.vkey], **changes}
        return check_receipt(document, options.pop("vkey", self.log.first.vkey), **options)
