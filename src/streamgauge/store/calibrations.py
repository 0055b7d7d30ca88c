"""Calibrations in the results folder, one per machine and placement; the newest counts."""

import re
from pathlib import Path

from streamgauge.model.calibration import Calibration
from streamgauge.store.documents import encode, read_value
from streamgauge.store.durable import replace_file

FOLDER = "calibrations"


def keep(root: Path, calibration: Calibration) -> Path:
    """Write it, in place of an older one of the same machine and placement."""
    path = _path(root, calibration.machine, calibration.placement)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, encode("calibration", calibration))
    return path


def kept(root: Path, machine: str, placement: str) -> Calibration | None:
    """The one of this machine and placement, if there is one."""
    path = _path(root, machine, placement)
    return read_value(path, "calibration", Calibration) if path.exists() else None


def workspace(root: Path, token: str) -> Path:
    """A folder for the trials of a calibration; it goes when the calibration is done."""
    path = root / FOLDER / f".work-{token}"
    path.mkdir(parents=True)
    return path


def _path(root: Path, machine: str, placement: str) -> Path:
    slug = re.sub(r"[^A-Za-z0-9]+", "-", f"{machine}-{placement}").strip("-").lower()
    return root / FOLDER / f"{slug[:120]}.json"
