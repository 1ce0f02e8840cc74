"""Files that an answer is written to: looked at before it is paid for."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import discreet.plotting as plotting
from discreet.errors import DataError, ParameterError

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.tables import Result

__all__ = ["AnswerFiles"]

_DRAWN = (".png", ".svg", ".pdf")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFiles:
    """Where to write an answer, its drawing, its receipt and its card; None for nowhere."""

    csv: Path | None = None
    xlsx: Path | None = None
    plot: Path | None = None
    receipt: Path | None = None
    card: Path | None = None

    def check(self) -> None:
        """Refuse what cannot be written, while nothing is spent."""
        for name in ("csv", "xlsx", "plot", "receipt", "card"):
            path: Path | None = getattr(self, name)
            if path is None:
                continue
            if not os.access(path.parent, os.W_OK) or path.is_dir():
                raise _refused(name, f"{path} cannot be written.")
            # One typo away lies the file with the data.
            if name in ("csv", "xlsx", "plot") and path.exists():
                raise _refused(name, f"{path} exists already.")
        if self.plot is not None and self.plot.suffix.lower() not in _DRAWN:
            raise _refused("plot", f"{self.plot} must end in {', '.join(_DRAWN)}.")
        if self.xlsx is not None:
            from discreet.tables import check_excel

            check_excel(self.xlsx)

    def write(self, result: "Result", ledger: "Ledger") -> list[Path]:
        """Write all of them; return where."""
        makers: dict[str, Callable[[Path], object]] = {
            "csv": result.to_csv,
            "xlsx": result.to_excel,
            "plot": lambda path: _drawn(result, path),
            "receipt": lambda path: ledger.prove(result.receipt).save(path),
            "card": lambda path: path.write_text(
                json.dumps(result.card(), indent=2, default=str) + "\n"
            ),
        }
        written = []
        for name, make in makers.items():
            path: Path | None = getattr(self, name)
            if path is None:
                continue
            try:
                make(path)
            except OSError as error:
                raise DataError(
                    f"{path} could not be written ({error.strerror}). The answer is paid for and "
                    "kept: the same question costs nothing again."
                ) from None
            written.append(path)
        return written


def _drawn(result: "Result", path: Path) -> None:
    axes = result.plot()
    plotting.save((axes[0] if isinstance(axes, tuple) else axes).figure, path)


def _refused(name: str, why: str) -> ParameterError:
    return ParameterError(f"{why} Nothing was spent. Say another place.", parameter=name)
