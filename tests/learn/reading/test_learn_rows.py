"""Datasets of every kind: what can be read by number, and what is refused."""

import pyarrow as pa
import pytest
import torch
from private_runs import (
    Items,
    begin,
    make_data,
    train,
    weights,
)
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from discreet.errors import (
    ParameterError,
)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(())


class TestData:
    @pytest.mark.parametrize(
        "build",
        [
            TensorDataset,
            Items,
            lambda x, y: (x.numpy(), y.numpy()),
            lambda x, y: {"x": x, "y": y},
            lambda x, y: list(zip(x, y, strict=True)),
            lambda x, y: torch.utils.data.Subset(Items(x, y), range(len(y))),
        ],
    )
    def test_every_kind_of_dataset_trains_the_same_model(self, build):
        features, labels = make_data(100)
        wanted = weights(train(begin(data=(features, labels))).model)
        found = weights(train(begin(data=build(features, labels))).model)
        assert torch.equal(found, wanted)

    def test_items_are_collated_by_ones_own_function(self):
        features, labels = make_data(100)
        texts = [{"text": row, "label": int(label)} for row, label in Items(features, labels)]

        def collate(items):
            return {
                "text": torch.stack([item["text"] for item in items]),
                "label": torch.tensor([item["label"] for item in items]),
            }

        found = weights(train(begin(data=texts, collate=collate)).model)
        assert torch.equal(found, weights(train(begin(data=(features, labels))).model))

    @pytest.mark.parametrize(
        ("dataset", "reason"),
        [
            (DataLoader(TensorDataset(*make_data(10))), "loader.dataset"),
            (Stream(), "IterableDataset"),
            (iter([1, 2]), "__len__ and __getitem__"),
            ({"x": [1, 2]}, "maps column names"),
            ((torch.zeros(3), torch.zeros(4)), "same number of rows"),
            ((torch.zeros(()),), "same number of rows"),
            (pa.table({"x": ["a", "b"]}), "not numeric"),
        ],
    )
    def test_what_cannot_be_sampled_is_refused_with_the_remedy(self, dataset, reason):
        with pytest.raises(ParameterError, match=reason):
            begin(data=dataset)
