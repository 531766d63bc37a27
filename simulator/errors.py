"""Everything that rollcast raises on purpose.

::

    RollcastError
    ├── ScenarioError       a file or an override that cannot be read as meant
    ├── InfeasibleError     well-formed, but it cannot run: memory, GPUs, acceptance
    ├── CalibrationError    a fit that lacks data or an extra that is not installed
    └── StuckError          the simulated pipeline waits for itself: a defect of ours

Each takes positional arguments only, since SimPy rebuilds an exception from ``args``.
The command line prints any of them as one line and exits with code 2.
"""


class RollcastError(Exception):
    """Base of all errors that a user can cause or must be told about."""


class ScenarioError(RollcastError):
    """Input that is not what it has to be: names file, line, key and what is allowed."""


class InfeasibleError(RollcastError):
    """A well-formed question that has no answer: says what does not fit, and by how much."""


class CalibrationError(RollcastError):
    """A fit that cannot be made: says which data or package is missing."""


class StuckError(RollcastError):
    """The simulation has nothing left to do before it is done: says who waits for what."""
