"""Runs the command as a user does: in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rollcast(*arguments, cwd=ROOT, timeout=120, **environment):
    """Run ``rollcast`` with these arguments; returns the completed process."""
    return subprocess.run(
        [sys.executable, "-m", "simulator", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
