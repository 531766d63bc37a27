"""Where the data that people edit lie: hardware profiles, workloads and scenarios.

In a checkout these folders stand beside the package; a wheel carries them inside it, under
``simulator/data``.
"""

from pathlib import Path


def data_root() -> Path:
    """Folder that holds ``hardware_profiles/``, ``workloads/`` and ``scenarios/``.

    The copy inside an installed wheel, else the root of the checkout.
    """
    package = Path(__file__).resolve().parent
    packaged = package / "data"
    return packaged if packaged.is_dir() else package.parent
