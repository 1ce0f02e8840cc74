"""Users who bring several rows: whose they are, and which of them take part."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from private_runs import (
    begin,
    clipped_sum,
    gradient_of,
    ids,
    loss_fn,
    make_data,
    make_model,
    tolerance,
    train,
    weights,
)
from scipy.stats import binom

from discreet.errors import (
    DataError,
    ParameterError,
)
from discreet.learn import (
    Poisson,
)
from discreet.learn.run.units import RowsById
from discreet.noise import SYSTEM
from discreet.testing import SeededSource

FALSE_ALARM = 1e-9


class TestUsers:
    def test_a_user_counts_as_one_by_the_mean_of_the_rows(self):
        clip, data, users = 0.3, make_data(90), ids(90, users=30)
        options = {"units": users, "rows_per_unit": 12, "sampling": "full", "batch_size": None}
        found = gradient_of(clip=clip, data=data, **options)
        groups = [np.flatnonzero(users == user).tolist() for user in np.unique(users)]
        assert max(map(len, groups)) <= 12
        wanted = clipped_sum(make_model(), groups, data, clip)
        assert (found - wanted).abs().max() < tolerance(clip)
        by_rows = clipped_sum(make_model(), [[i] for i in range(90)], data, clip)
        assert (by_rows - wanted).norm() > wanted.norm()

    @pytest.mark.parametrize("micro", [1, 4])
    def test_micro_batches_never_part_a_user(self, micro):
        data, users = make_data(60), ids(60, users=20)
        options = {"units": users, "rows_per_unit": 3, "batch_size": 8}
        whole = weights(train(begin(data=data, **options)).model)
        parted = weights(train(begin(data=data, micro_batch_size=micro, **options)).model)
        torch.testing.assert_close(parted, whole, rtol=0, atol=1e-4)

    @pytest.mark.lengthy
    @given(
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12),
        each=st.integers(1, 6),
        seed=st.integers(0, 10**6),
    )
    def test_a_unit_brings_its_own_rows_each_once(self, sizes, each, seed):
        rng = np.random.default_rng(seed)
        owners = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        grouped = RowsById(owners, each)
        assert grouped.count == len(sizes)
        drawn = np.flatnonzero(rng.random(len(sizes)) < 0.7)
        rows, shares = grouped.rows(drawn, SeededSource(seed))
        rows, shares = rows.reshape(-1, each), shares.reshape(-1, each)
        for unit, own, share in zip(drawn, rows, shares, strict=True):
            real = own[share > 0]
            assert (owners[own] == unit).all()
            assert len(set(real.tolist())) == len(real) == min(each, sizes[unit])
            np.testing.assert_allclose(share[share > 0], 1 / len(real))

    def test_rows_of_a_large_user_are_drawn_evenly(self):
        draws, rows, each = 3_000, 10, 3
        grouped = RowsById(np.repeat([5, 6], [rows, 2]), each)
        counts = np.zeros(rows + 2)
        for _ in range(draws):
            picked, share = grouped.rows(np.array([0, 1]), SYSTEM)
            np.add.at(counts, picked[share > 0], 1)
        tail = FALSE_ALARM / (2 * rows)
        law = binom(draws, each / rows)
        assert (law.cdf(counts[:rows]) > tail).all()
        assert (law.sf(counts[:rows] - 1) > tail).all()
        assert counts[rows:].tolist() == [draws, draws]
        wrong = binom(draws, 0.8 * each / rows)
        assert (wrong.sf(counts[:rows] - 1) < tail).any()

    def test_units_come_from_a_column_of_a_dict_or_a_table(self):
        features, labels = make_data(60)
        users = np.array([f"u{i}" for i in ids(60, users=20)])
        table = pa.table(
            {"a": features[:, 0].numpy(), "label": labels.numpy(), "user": pa.array(users)}
        )
        private = begin(data=table, units="user", rows_per_unit=2, batch_size=5)
        assert private._stepping.units.count == len(set(users))
        assert private.spent.unit == "all records of one user"
        columns = {"a": features, "label": labels, "user": torch.from_numpy(ids(60, users=20))}
        private = begin(data=columns, units="user", rows_per_unit=2, batch_size=5)
        seen = []

        def look(model, batch):
            seen.append(sorted(batch))
            return loss_fn(model, batch)

        train(private, look, steps=1)
        assert seen[0] == ["a", "label"]

    def test_population_counts_users(self):
        private = begin(data=make_data(100), units=ids(100, users=10), batch_size=5)
        assert private._promise.sampling == Poisson(rate=Fraction(1, 2), population=10)

    @pytest.mark.parametrize(
        ("units", "error"),
        [
            (np.zeros(99), DataError),
            (np.full(100, np.nan), DataError),
            ([None] * 100, DataError),
            (np.array([None] * 100), DataError),
            (["a", 1] * 50, DataError),
            (3, ParameterError),
            ("user", ParameterError),
        ],
    )
    def test_bad_units_are_refused(self, units, error):
        with pytest.raises(error):
            begin(units=units)

    def test_rows_per_unit_needs_units(self):
        with pytest.raises(ParameterError, match="units="):
            begin(rows_per_unit=2)
