"""``discreet ledger witness``: beside the ledger, or by files that go there and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from discreet._json import read_json
from discreet.cli.ledger.files import read_file, read_vkey, write_file
from discreet.cli.ledger.opening import reading, refusals, writing
from discreet.cli.options import BUDGET, FILE, KeyOption, LedgerOption
from discreet.cli.output import tell
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger, Witness

ROTATIONS: Final = ".rotations.json"  # behind a request's name: how its key came to sign


def witness(
    witness: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the witness keeps its memory.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Make the witness first, with this name: example.org/w1.")
    ] = None,
    request: Annotated[Path | None, FILE(help="Write a request for a witness elsewhere.")] = None,
    since: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="How many entries that witness has seen.")
    ] = None,
    cosign: Annotated[
        Path | None, typer.Option(metavar="REQUEST", help="At the witness: answer a request.")
    ] = None,
    vkey: Annotated[Path | None, FILE(help="At the witness: the ledger's public key.")] = None,
    out: Annotated[Path | None, FILE(help="At the witness: where to write the answer.")] = None,
    add: Annotated[
        Path | None, typer.Option(metavar="NOTE", help="Put a witness's answer into the ledger.")
    ] = None,
    witness_key: Annotated[Path | None, FILE(help="The witness's public key, witness.pub.")] = None,
    ledger: LedgerOption = BUDGET,
    key: KeyOption = None,
) -> None:
    """Let somebody who remembers vouch that nothing was taken back.

    On this machine: [bold]discreet ledger witness --witness w1 --name example.org/w1[/bold]

    On another one, by any way that carries files:
    [bold]discreet ledger witness --request ask.txt[/bold],
    there [bold]discreet ledger witness --cosign ask.txt --witness w1 --vkey ledger.pub
    --out note.txt[/bold],
    and here [bold]discreet ledger witness --add note.txt --witness-key witness.pub[/bold]
    """
    ways = {"--request": request, "--cosign": cosign, "--add": add}
    chosen = [way for way, value in ways.items() if value is not None]
    if len(chosen) > 1 or (not chosen and witness is None):
        raise ParameterError(
            "say one of: --witness FOLDER, --request FILE, --cosign REQUEST, --add NOTE.",
            parameter="witness",
        )
    if request is not None:
        _ask(ledger, request, since=since, witness_key=witness_key)
    elif cosign is not None:
        _answer(_needed(witness, "--witness FOLDER"), cosign, name=name, vkey=vkey, out=out)
    elif add is not None:
        signer = read_vkey(_needed(witness_key, "--witness-key FILE"))
        with writing(ledger, key) as book:
            book.add_cosignature(read_file(add), vkey=signer)
            tell(f"Entry {book.size - 1} holds the word of {signer.partition('+')[0]}.")
    elif witness is not None:
        with writing(ledger, key) as book:
            note = book.witness(_witness_at(witness, name))
        tell(
            f"Cosigned as of {note.splitlines()[1]} entries; its public key: {witness}/witness.pub"
        )


def _needed(path: Path | None, option: str) -> Path:
    if path is None:
        raise ParameterError(f"this also takes {option}.", parameter="witness")
    return path


def _witness_at(folder: Path, name: str | None) -> "Witness":
    from discreet.ledger import Witness

    return Witness.open(folder) if name is None else Witness.create(folder, name=name)


def _ask(ledger: str, file: Path, *, since: int | None, witness_key: Path | None) -> None:
    from discreet.ledger import WitnessRequest

    vkey = None if witness_key is None else read_vkey(witness_key)
    with reading(ledger) as book:
        old = _last_seen(book, vkey) if since is None else since
        while True:
            receipt = book.prove(0)
            document = receipt.proof or {}
            proof = book.consistency(old)
            if document["checkpoint"] == book.checkpoint():
                break  # nobody wrote meanwhile, so all of it is about one size
    write_file(file, str(WitnessRequest(old, proof, document["checkpoint"])))
    more = ""
    if document["rotations"]:
        more = f" and {write_file(file.with_name(file.name + ROTATIONS), receipt.to_json())}"
    tell(f"Wrote {file}{more} for a witness that has seen {old} entries. Send it there.")


def _last_seen(book: "Ledger", vkey: str | None) -> int:
    """Return the size that a witness cosigned last, or any witness; 0 where none has."""
    from discreet.ledger.verifier import parse_checkpoint

    for note, signer in reversed(book.witnessed()):
        if vkey in (None, signer):
            return parse_checkpoint(note).size
    return 0


def _answer(
    folder: Path, file: Path, *, name: str | None, vkey: Path | None, out: Path | None
) -> None:
    from discreet.ledger import WitnessRequest
    from discreet.ledger.verifier import parse_checkpoint

    asked_by = None if vkey is None else read_vkey(vkey)
    with refusals():
        asked = WitnessRequest.parse(read_file(file))
        beside = file.with_name(file.name + ROTATIONS)
        rotations = _rotations(beside) if beside.exists() else []
        line = _witness_at(folder, name).cosign(
            asked.note, asked.consistency, vkey=asked_by, rotations=rotations, old=asked.old
        )
        size = parse_checkpoint(asked.note).size
    if out is None:
        typer.echo((asked.note + line).encode(), nl=False)
    else:
        tell(f"Cosigned {size} entries. Send {write_file(out, asked.note + line)} back.")


def _rotations(file: Path) -> list[object]:
    try:
        return list(read_json(read_file(file), strict=True)["rotations"])
    except (ValueError, KeyError, TypeError):
        raise ParameterError(f"{file} is no receipt.", parameter="cosign") from None
