"""Products can be made whole for a while, whichever of torch's settings a user has touched."""

import subprocess
import sys

import pytest

SETTINGS = {
    "untouched": "pass",
    "high": "torch.set_float32_matmul_precision('high')",
    "medium": "torch.set_float32_matmul_precision('medium')",
    "allowed": "torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True",
    "newer": "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "newer, of all": "torch.backends.fp32_precision = 'tf32'",
}
# In a process of its own: torch notices for ever which of its settings were used.
PROGRAM = """
import torch
from discreet.learn.norms.dispatch import allows_tf32, without_tf32
{setting}

def settings():
    found = [allows_tf32(False), allows_tf32(True)]
    for kind in (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn):
        found.append(getattr(kind, "fp32_precision", None))
    try:
        return [*found, torch.get_float32_matmul_precision()]
    except RuntimeError:
        return found

before = settings()
try:
    with without_tf32():
        print(allows_tf32(False) or allows_tf32(True))
        1 / 0
except ZeroDivisionError:
    print(settings() == before, any(before[:2]))
"""


@pytest.mark.parametrize("setting", SETTINGS)
def test_products_are_whole_and_then_as_before(setting):
    program = PROGRAM.format(setting=SETTINGS[setting])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "True"], done.stderr
