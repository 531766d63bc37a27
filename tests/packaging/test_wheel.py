"""The wheel stands on its own: built, installed and run far from the checkout."""

import json
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DATA_FOLDERS = ("hardware_profiles", "workloads", "scenarios")


@dataclass(frozen=True)
class Installation:
    """An environment that holds the wheel and sees this one's dependencies."""

    environment: Path
    elsewhere: Path

    def run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [self.environment / "bin" / program, *arguments],
            cwd=self.elsewhere,
            env={"PATH": str(self.environment / "bin"), "HOME": str(self.elsewhere)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def evaluate(self, statements: str) -> str:
        return self.run("python", "-c", statements).strip()


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    scratch = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    offline = ["--no-deps", "--no-index"]
    subprocess.run(
        [*pip, "wheel", *offline, "--no-build-isolation", "-w", scratch, CHECKOUT], check=True
    )
    (wheel,) = scratch.glob("rollcast-*.whl")

    environment = scratch / "environment"
    venv.create(environment)
    python = environment / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", *offline, wheel], check=True)

    # Files named *.pth are read in this environment's own folder only. So the dependencies
    # come into sight, and the checkout, which is installed through such a file, does not.
    own = sysconfig.get_path("purelib", vars={"base": str(environment)})
    seen = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(own) / "dependencies.pth").write_text("\n".join(sorted(seen)) + "\n")

    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    return Installation(environment, elsewhere)


def test_package_and_data_come_from_the_wheel(installation: Installation) -> None:
    package = Path(installation.evaluate("import simulator; print(*simulator.__path__)"))
    root = Path(
        installation.evaluate("from simulator.data_root import data_root; print(data_root())")
    )
    assert package.is_relative_to(installation.environment)
    assert (package / "py.typed").is_file()
    assert root == package / "data"


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_every_data_file_is_shipped(installation: Installation, folder: str) -> None:
    root = Path(
        installation.evaluate("from simulator.data_root import data_root; print(data_root())")
    )
    shipped, edited = (
        {path.relative_to(top) for path in (top / folder).rglob("*") if path.is_file()}
        for top in (root, CHECKOUT)
    )
    assert edited
    assert shipped == edited


def test_tests_are_not_shipped(installation: Installation) -> None:
    files = installation.evaluate(
        "from importlib.metadata import files; print(*files('rollcast'), sep='\\n')"
    )
    tops = {line.split("/")[0] for line in files.splitlines() if not line.startswith("..")}
    assert tops == {"simulator", f"rollcast-{version('rollcast')}.dist-info"}


def test_command_prints_its_version(installation: Installation) -> None:
    assert version("rollcast") in installation.run("rollcast", "--version")


def test_command_lists_the_scenarios(installation: Installation) -> None:
    assert "qwen3-235b-sync-512" in installation.run("rollcast", "scenarios")


def test_command_runs_a_shipped_scenario(installation: Installation) -> None:
    printed = installation.run("rollcast", "run", "qwen3-235b-sync-512", "--steps", "1", "--json")
    assert json.loads(printed)
