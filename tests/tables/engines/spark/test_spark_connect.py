"""The suite that all engines pass, with a session that is nothing but a connection to a server."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("test_spark_conformance.py")


@pytest.mark.slow
@pytest.mark.needs("spark")
def test_spark_connect_passes_the_suite_too():
    """In a process of its own: a classic session and a connection do not live in one."""
    plain = ["-q", "-m", "slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
    call = [sys.executable, "-m", "pytest", *plain, SUITE]
    here = os.environ | {"SPARK_REMOTE": "local[2]"}
    done = subprocess.run(call, env=here, capture_output=True, text=True, check=False)
    told = done.stdout[-4000:] + done.stderr[-2000:]
    assert done.returncode == 0, told
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None, told
    assert int(passed[1]) > 50, told
