"""Rows of whatever a dataset is: read by number, moved to the model's device."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from discreet._exact import whole
from discreet.errors import ParameterError
from discreet.learn.choices.draws import Indices
from discreet.learn.reading.items import Items
from discreet.learn.reading.making import Collate, RowMaker, Transform
from discreet.learn.reading.taking import Taken, Taking

__all__ = ["Making", "Rows", "column_of", "moved", "rows_of"]


class Rows(Protocol):
    """Rows that can be read by number, and what is public about their form."""

    @property
    def count(self) -> int:
        """How many rows there are: as private as the data."""
        ...

    @property
    def form(self) -> str:
        """Names, types and shapes, without a value or a number of rows."""
        ...

    @property
    def is_ahead(self) -> bool:
        """Whether rows are read in the background, so that it pays to begin early."""
        ...

    def begin(self, indices: Indices) -> Taking:
        """Return what gives these rows as one micro-batch."""
        ...


@final
class _Columns:
    """Columns that are tensors already: one index_select each, on the device they are on."""

    is_ahead = False

    def __init__(self, columns: Mapping[str, Tensor], build: Callable[[list[Tensor]], Any]) -> None:
        self._columns = dict(columns)
        self._build = build
        lengths = {column.shape[0] for column in columns.values() if column.ndim}
        if len(lengths) != 1 or any(not column.ndim for column in columns.values()):
            raise ParameterError(
                "the tensors of a dataset must have the same number of rows, the first dimension "
                "of each. Nothing was read.",
                parameter="dataset",
            )
        self._count = lengths.pop()

    @property
    def count(self) -> int:
        return self._count

    @property
    def form(self) -> str:
        return ", ".join(
            f"{name}: {str(column.dtype).removeprefix('torch.')}{list(column.shape[1:])}"
            for name, column in self._columns.items()
        )

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        return self._build([column[index] for column in self._columns.values()])

    def begin(self, indices: Indices) -> Taking:
        return lambda: Taken(self._take(indices))

    def _take(self, indices: Indices) -> Any:
        wanted = torch.from_numpy(indices)
        where: dict[torch.device, Tensor] = {}
        parts = []
        for column in self._columns.values():
            if column.device not in where:
                where[column.device] = wanted.to(column.device)
            parts.append(column.index_select(0, where[column.device]))
        return self._build(parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """How rows are made of a dataset's items: see :class:`ExecutionOptions`."""

    transform: Transform | None = None
    collate: Collate | None = None
    workers: int = 0
    debug: bool = False

    def __post_init__(self) -> None:
        for name in ("transform", "collate"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ParameterError(
                    f"{name} must be a function of one item"
                    f"{', in a list of one' if name == 'collate' else ''}.",
                    parameter=name,
                )
        if self.workers:
            whole(self.workers, name="workers", hint="It is a number of processes.")

    @property
    def is_plain(self) -> bool:
        """Whether items are rows as they are."""
        return self.transform is None and self.collate is None


def rows_of(dataset: object, making: Making, *, without: str | None = None) -> Rows:
    """Return the rows of a dataset, or refuse what has batches or an order of its own.

    ``without`` names a column of a mapping or table that is no part of a row: the units' ids.
    """
    if isinstance(dataset, DataLoader):
        raise ParameterError(
            "a DataLoader makes batches of its own, and they are not the ones that are accounted: "
            "shuffled batches of fixed size do not have the privacy of Poisson sampling. Pass the "
            "dataset inside it (loader.dataset), and its collate_fn as collate=.",
            parameter="dataset",
        )
    if isinstance(dataset, IterableDataset):
        raise ParameterError(
            "an IterableDataset decides itself who comes next, so no sampling of it can be "
            "accounted. Pass a dataset with __len__ and __getitem__; a list of its items will do.",
            parameter="dataset",
        )
    columns = _columns_of(dataset, without)
    if columns is not None and making.is_plain:
        return columns
    if columns is not None:
        dataset = columns
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise ParameterError(
            f"dataset must have __len__ and __getitem__, got an object of type "
            f"{type(dataset).__name__}. Pass a torch Dataset, or a tuple or dict of tensors.",
            parameter="dataset",
        )
    if isinstance(dataset, Mapping):
        raise ParameterError(
            "a dict is a dataset if it maps column names to tensors or arrays, each with one row "
            "for each example.",
            parameter="dataset",
        )
    maker = RowMaker(dataset, making.transform, making.collate, making.debug)
    return Items(maker, workers=making.workers)


def _columns_of(dataset: Any, without: str | None) -> _Columns | None:
    """Return a dataset as columns of tensors, None if it is none."""
    if type(dataset) is TensorDataset:  # a subclass may do more than look up
        dataset = dataset.tensors
    if _is_arrow(dataset):
        names = [name for name in dataset.column_names if name != without]
        dataset = {name: _arrow_column(dataset, name) for name in names}
    if isinstance(dataset, Tensor | np.ndarray):
        return _Columns({"row": torch.as_tensor(dataset)}, lambda parts: parts[0])
    if isinstance(dataset, Mapping):
        dataset = {name: one for name, one in dataset.items() if name != without}
        if not dataset or not all(isinstance(one, Tensor | np.ndarray) for one in dataset.values()):
            return None
        names = list(dataset)
        columns = {str(name): torch.as_tensor(one) for name, one in dataset.items()}
        return _Columns(columns, lambda parts: dict(zip(names, parts, strict=True)))
    if isinstance(dataset, tuple) and dataset:
        if not all(isinstance(one, Tensor | np.ndarray) for one in dataset):
            return None
        columns = {str(i): torch.as_tensor(one) for i, one in enumerate(dataset)}
        return _Columns(columns, tuple)
    return None


def column_of(dataset: object, name: str) -> npt.NDArray[Any]:
    """Return a named column of a dataset as an array, for the units of its rows."""
    names = getattr(dataset, "column_names", None)
    known = list(dataset) if isinstance(dataset, Mapping) else names
    if known is None:
        raise ParameterError(
            f"units={name!r} names a column, but a dataset of type {type(dataset).__name__} has no "
            "columns. Pass an array with one id for each row.",
            parameter="units",
        )
    if name not in known:
        raise ParameterError(
            f"the dataset has no column {name!r}; it has {', '.join(map(str, known))}.",
            parameter="units",
        )
    column: Any = dataset[name]  # type: ignore[index]  # what has columns has them by name
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy())
    if isinstance(column, Tensor):
        return column.detach().cpu().numpy()
    return np.asarray(column if isinstance(column, np.ndarray) else list(column))


def moved(batch: Any, device: torch.device) -> Any:
    """Return a micro-batch with every tensor in it on ``device``."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        # A plain dict, whatever mapping of its own a collator returns.
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(value, device) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(moved(value, device) for value in batch)
    return batch


def _is_arrow(dataset: object) -> bool:
    kind = type(dataset)
    return kind.__module__.partition(".")[0] == "pyarrow" and kind.__name__ == "Table"


def _arrow_column(table: Any, name: str) -> Tensor:
    column = table[name]
    numeric = ("int", "uint", "float", "double", "halffloat", "bool")
    if column.null_count or not str(column.type).startswith(numeric):
        raise ParameterError(
            f"column {name!r} has nulls or is not numeric, so it cannot become a tensor. Nothing "
            "was spent. Select the numeric columns, fill their nulls, and pass the ids of units "
            "as an array.",
            parameter="dataset",
        )
    return torch.from_numpy(np.array(column.to_numpy()))
