"""PostgreSQL gives the integers that every engine gives."""

import pyarrow as pa
import pytest

from discreet.tables.engines import PostgresConnection
from discreet.testing import EngineConformance

pytestmark = pytest.mark.needs("postgres")


class TestPostgres(EngineConformance):
    @pytest.fixture(autouse=True)
    def _loaded(self, loaded):
        self.loaded = loaded

    def connect(self, tables: dict[str, pa.Table]) -> PostgresConnection:
        return self.loaded.connect(tables)
