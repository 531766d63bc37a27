"""How a command begins and how it is broken off: light, quiet, and without a traceback."""

import io
import os
import signal
import subprocess
import sys

import pytest

from simulator.cli import progress
from simulator.cli.progress import replication_progress
from tests.cli.command import ROOT

HEAVY = {"pandas", "matplotlib", "scipy", "numpy", "simpy", "ruamel"}
"""Not pydantic: typer itself loads it where it finds it."""

LIGHT_START = """
import sys
from simulator.cli.app import main
sys.argv = ["rollcast", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_and_version_import_nothing_heavy(arguments):
    done = subprocess.run(
        [sys.executable, "-c", LIGHT_START, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert loaded.isdisjoint(HEAVY)


class Terminal(io.StringIO):
    """A stream that says it is looked at."""

    def isatty(self):
        return True


@pytest.fixture
def no_patience(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE_S", -1.0)
    monkeypatch.setenv("TERM", "xterm")


def test_no_bar_is_drawn_where_nobody_looks(no_patience):
    stream = io.StringIO()
    with replication_progress(stream, is_wanted=True) as show:
        assert show is None
    assert stream.getvalue() == ""


def test_no_bar_is_drawn_for_who_wants_quiet(no_patience):
    stream = Terminal()
    with replication_progress(stream, is_wanted=False) as show:
        assert show is None
    assert stream.getvalue() == ""


def test_a_bar_is_drawn_on_a_terminal_after_a_while(no_patience):
    stream = Terminal()
    with replication_progress(stream, is_wanted=True) as show:
        show(1, 2)
        show(2, 2)
    assert "simulating" in stream.getvalue()


def test_a_quick_run_draws_no_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE_S", 1e9)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with replication_progress(stream, is_wanted=True) as show:
        show(1, 2)
    assert "simulating" not in stream.getvalue()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_an_interrupt_while_reading_ends_without_a_traceback(tmp_path):
    """The command reads a pipe; that it has been opened tells when to interrupt."""
    pipe = tmp_path / "scenario.yaml"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "simulator", "run", str(pipe), "--json"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            with pipe.open("wb"):
                process.send_signal(signal.SIGINT)
                printed, complaint = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert printed == ""
    assert "Traceback" not in complaint


INTERRUPTED_RUN = """
import os, signal, sys
from simulator.analysis import projection
from simulator.cli.app import main

whole = projection.simulate_arm

def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return whole(*arguments)

projection.simulate_arm = interrupted
sys.argv = ["rollcast", *sys.argv[1:]]
main()
"""


def test_an_interrupt_while_simulating_leaves_no_files(tmp_path):
    out = tmp_path / "out"
    arguments = ["run", "qwen3-8b-rl-zero", "--json", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_RUN, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert list(out.iterdir()) == []


def test_a_reader_that_goes_away_gets_no_traceback():
    with subprocess.Popen(
        [sys.executable, "-m", "simulator", "models"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        complaint = process.stderr.read()
        process.wait(timeout=60)
    assert complaint == ""
    assert process.returncode == 1
