"""Spark passes the suite that all engines pass, with ranks of its own and with those of all."""

import pytest

from discreet.tables.engines import SparkEngine
from discreet.testing import EngineConformance

pytestmark = [pytest.mark.slow, pytest.mark.needs("spark")]


class TestSpark(EngineConformance):
    is_portable = False

    @pytest.fixture(autouse=True)
    def _spark(self, spark, frame_of):
        self.spark, self.frame_of = spark, frame_of

    def connect(self, tables):
        engine = SparkEngine(self.spark, portable=self.is_portable)
        frames = {name: self.frame_of(table) for name, table in tables.items()}
        return engine.open({name: engine.look(name, frame) for name, frame in frames.items()})
