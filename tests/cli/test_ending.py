"""A command that is told to end does so in order: nothing spilled is left behind."""

import signal
import subprocess
import sys

import pytest

WAITING = """
import atexit, sys, time
from discreet.cli import app, main
atexit.register(lambda: print("cleaned", flush=True))
@app.command()
def wait() -> None:
    print("ready", flush=True)
    time.sleep(60)
sys.argv = ["discreet", "wait"]
main()
"""


@pytest.mark.lengthy
def test_a_command_that_is_terminated_cleans_up():
    command = [sys.executable, "-c", WAITING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        child.terminate()
        assert child.stdout.read() == "cleaned\n"
    assert child.returncode == 128 + signal.SIGTERM
