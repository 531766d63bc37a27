"""From measured kernels to hardware profiles: :func:`calibrate` refits one and writes its YAML."""

from simulator.calibration.profile import calibrate

__all__ = ["calibrate"]
