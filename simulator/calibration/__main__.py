"""Refit hardware profiles from the shell: ``python -m simulator.calibration --gpu gb200``.

A thin entry for those who have the tables but not the command line of rollcast. It writes the
profile beside the shipped ones and prints its errors on held-out shapes.
"""

import argparse
import sys
from pathlib import Path

from simulator.calibration.choices import CHOICES
from simulator.calibration.profile import calibrate
from simulator.calibration.report import error_table
from simulator.data_root import data_root
from simulator.errors import RollcastError


def main(arguments: list[str] | None = None) -> int:
    """Refit each GPU named, by default all; 2 is a failure that a user can mend."""
    parser = argparse.ArgumentParser(prog="python -m simulator.calibration")
    parser.add_argument("--gpu", action="append", choices=sorted(CHOICES), help="default: all")
    parser.add_argument("--output", type=Path, default=data_root() / "hardware_profiles")
    options = parser.parse_args(arguments)
    try:
        profiles = [
            calibrate(gpu, options.output / f"{gpu}.yaml") for gpu in options.gpu or sorted(CHOICES)
        ]
    except RollcastError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(error_table(profiles) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
