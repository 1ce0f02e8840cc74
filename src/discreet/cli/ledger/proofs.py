"""The commands that convince others: verification, receipts and checkpoints."""

import os
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.ledger.files import read_file, read_vkey, write_file
from discreet.cli.ledger.opening import progress, reading, refusals
from discreet.cli.options import BUDGET, FILE, JsonOption, LedgerOption
from discreet.cli.output import echo_json, tell
from discreet.errors import LedgerUnavailable, ParameterError, TamperingFound

if TYPE_CHECKING:
    from discreet.ledger import Verification

NOT_PROVEN = 1


def verify(
    file: Annotated[
        Path | None, typer.Argument(help="An export to verify in place of a ledger.")
    ] = None,
    incremental: Annotated[
        bool, typer.Option("--incremental", help="Go on from what was verified the last time.")
    ] = False,
    state: Annotated[
        Path | None, FILE(help="Where to keep what was verified, for the next time.")
    ] = None,
    pinned: Annotated[
        Path | None, FILE(help="A checkpoint from elsewhere that it must extend.")
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            "--public", "--vkey", metavar="FILE", help="Its public key, as it was handed out."
        ),
    ] = None,
    ledger: LedgerOption = BUDGET,
    as_json: JsonOption = False,
) -> None:
    """Check everything: chain, tree, signatures, arithmetic, balances, kept answers.

    Exits with 1 and names the first bad entry where something was altered. An old copy in the
    place of a newer ledger shows only with [bold]--pinned[/bold] or [bold]--incremental[/bold].

    Example: [bold]discreet ledger verify --public budget.db.pub --pinned checkpoint.txt[/bold]
    """
    vkey = None if public is None else read_vkey(public)
    note = None if pinned is None else read_file(pinned)
    try:
        if file is None:
            origin, done, kept = _verified_ledger(
                ledger, note, vkey, incremental=incremental, state=state
            )
        elif incremental or state is not None:
            raise ParameterError(
                "an export is always verified whole: leave --incremental and --state out.",
                parameter="incremental",
            )
        else:
            (origin, done), kept = _verified_export(file, note, vkey), None
    except TamperingFound as found:
        if not as_json:
            raise
        echo_json({"verified": False, "entry": found.entry, "reason": str(found)})
        raise typer.Exit(NOT_PROVEN) from None
    if as_json:
        echo_json(
            {
                "verified": True,
                "origin": origin,
                "entries": done.size,
                "since": done.start,
                "checkpoint": done.checkpoint,
                "state": None if kept is None else str(kept),
            }
        )
        return
    tell(f"{origin}: {done}.", bold=True)
    tell("Chain, tree, signatures, arithmetic, balances and kept answers are as they must be.")
    _tell_what_was_not_checked(done, kept, is_pinned=pinned is not None, has_key=public is not None)


def _tell_what_was_not_checked(
    done: "Verification", kept: Path | None, *, is_pinned: bool, has_key: bool
) -> None:
    if not has_key and not done.start:
        tell("Who signed it was taken from the ledger itself. Give its public key with --public.")
    if kept is not None:
        tell(f"Remembered in {kept}: the next --incremental goes on from here.")
    elif not is_pinned:
        tell("Whether it is the newest copy was not checked: that takes --pinned or --incremental.")


def _verified_ledger(
    ledger: str, note: str | None, vkey: str | None, *, incremental: bool, state: Path | None
) -> "tuple[str, Verification, Path | None]":
    """Verify a ledger and remember it; return its name, what was found, and where it is kept."""
    with reading(ledger) as book, progress("verifying") as told:
        kept = _state_file(book.origin) if incremental and state is None else state
        since = _remembered(kept) if incremental else None
        done = book.verify(pinned=note, vkey=vkey, since=since, progress=told)
        origin = book.origin
    if kept is not None:
        _remember(done, kept)
    return origin, done, kept


def _verified_export(file: Path, note: str | None, vkey: str | None) -> "tuple[str, Verification]":
    from discreet.ledger import Export

    with refusals(), progress("verifying") as told:
        export = Export(file)
        done = export.verify(pinned=[] if note is None else [note], vkey=vkey, progress=told)
    return export.origin, done


def _state_file(origin: str) -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "discreet" / f"{sha256(origin.encode()).hexdigest()[:32]}.json"


def _remembered(state: Path | None) -> "Verification | None":
    from discreet.ledger import Verification

    return Verification.load(state) if state is not None and state.exists() else None


def _remember(done: "Verification", state: Path) -> None:
    try:
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        done.save(state)
    except OSError as error:
        raise LedgerUnavailable(f"{state} cannot be written ({error.strerror}).") from error


def prove(
    index: Annotated[int, typer.Argument(min=0, help="The entry: history lists them.")],
    out: Annotated[Path | None, FILE(help="Where to write the receipt.")] = None,
    witnessed: Annotated[
        bool, typer.Option("--witnessed", help="In the last checkpoint that a witness cosigned.")
    ] = False,
    answer: Annotated[
        Path | None, FILE(help="Where to write the answer that a release commits to.")
    ] = None,
    ledger: LedgerOption = BUDGET,
) -> None:
    """Write a receipt: an entry, with the proof that it is in the log, for who has no ledger.

    Of a release it also proves the charge that paid for it.

    Example: [bold]discreet ledger prove 7 --out receipt.json[/bold], and there
    [bold]discreet verify receipt.json --key budget.db.pub[/bold]
    """
    with reading(ledger) as book:
        document = book.prove(index, witnessed=witnessed).to_json()
        kept = None if answer is None else book.answer_of(index)
    if answer is not None and kept is not None:
        answer.write_bytes(kept)
    if out is None:
        typer.echo(document, nl=False)
    else:
        tell(f"Wrote {write_file(out, document)}. Check it with: discreet verify {out} --key ...")


def checkpoint(
    out: Annotated[Path | None, FILE(help="Where to write the checkpoint.")] = None,
    public: Annotated[Path | None, FILE(help="Write the public key that signs now, too.")] = None,
    ledger: LedgerOption = BUDGET,
    as_json: JsonOption = False,
) -> None:
    """Write down how far the log has come, signed. Keep it elsewhere, to notice an old copy.

    Example: [bold]discreet ledger checkpoint --out checkpoint.txt[/bold]
    """
    from discreet.ledger.verifier import parse_checkpoint

    with reading(ledger) as book:
        note = book.checkpoint()
        found = parse_checkpoint(note)
        if public is not None:
            write_file(public, f"{book.vkey}\n", over=False)
    if out is not None:
        write_file(out, note)
    if as_json:
        root = b64encode(found.root).decode()
        echo_json({"origin": found.origin, "size": found.size, "root": root, "note": note})
    elif out is not None:
        tell(f"Wrote {out}: {found.origin} has {found.size} entries.")
    else:
        typer.echo(note.encode(), nl=False)  # signed as these bytes, whatever the terminal reads


def verify_receipt(
    receipt: Annotated[Path, typer.Argument(help="The receipt, a JSON file.")],
    key: Annotated[Path, FILE(help="The ledger's public key.")],
    answer: Annotated[Path | None, FILE(help="The answer that came with it.")] = None,
    witness: Annotated[list[Path] | None, FILE(help="A witness's public key; repeatable.")] = None,
    quorum: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="How many witnesses it takes (all).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a receipt without the ledger: exit code 0 if it is proven, 1 if not.

    Example: [bold]discreet verify receipt.json --key ledger.pub --witness witness.pub[/bold]
    """
    from discreet.ledger import verifier

    # "--key=--" would be taken for an option that ends all options: a name begins with no hyphen.
    options = [f"--key={_path(key)}", *(f"--witness={_path(one)}" for one in witness or ())]
    options += [] if answer is None else [f"--answer={_path(answer)}"]
    options += [] if quorum is None else [f"--quorum={quorum}"]
    options += ["--json"] if as_json else []
    raise typer.Exit(verifier.main([*options, _path(receipt)]))


def _path(path: Path) -> str:
    return str(path) if path.is_absolute() else f"./{path}"
