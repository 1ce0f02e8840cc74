"""Run `discreet` in this process, as tests of the command line do."""

import json

from typer.testing import CliRunner

from discreet.cli import app

SECRET_QUERY = "select salary where name = 'Bö'"
SECRET_VALUE = 918273


def run(*args, **environment):
    return CliRunner().invoke(app, [str(a) for a in args], env=environment)


def did(*args, **environment):
    result = run(*args, **environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def facts(*args):
    return json.loads(did(*args, "--json"))
