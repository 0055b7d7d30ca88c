"""Damaged files: a sentence that names the file, or the very same values; never another exception."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import store_samples as sample

from streamgauge.store import Run, StoreError

FILES = (
    "run.json",
    "experiment.yaml",
    "experiment.json",
    "environment.json",
    "findings.json",
    "trials/001/manifest.json",
    "trials/001/seconds.parquet",
    "trials/001/latencies.parquet",
)
Harm = Callable[[bytes, random.Random], bytes]


def everything(path: Path) -> str:
    """All that can be read of a run, as one text to compare."""
    run = Run.open(path)
    parts = [run, run.text, run.environment, run.trials(), run.conclusion()]
    recorded = [run.recording(number) for number in (1, 2)]
    columns = [[(k, v.tolist()) for k, v in sorted(r.seconds.columns.items())] for r in recorded]
    counts = [[(k, v.second.tolist(), v.bucket.tolist(), v.count.tolist()) for k, v in r.seconds.latencies.items()]
              for r in recorded]  # fmt: skip
    return repr([parts, columns, counts, [(r.trial, r.outcome, r.facts) for r in recorded]])


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def scramble(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 40)) + data[at:]


def vanish(data: bytes, rng: random.Random) -> bytes:
    return b""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample.whole_run(tmp_path_factory.mktemp("runs")).path


@pytest.mark.parametrize("harm", [truncate, flip, scramble, vanish])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_or_harmless(whole: Path, tmp_path: Path, name: str, harm: Harm) -> None:
    rng = random.Random(f"{name} {harm.__name__}")
    path = tmp_path / whole.name
    shutil.copytree(whole, path)
    before, original = everything(path), (path / name).read_bytes()
    told = []
    for _ in range(1 if harm is vanish else 30):
        (path / name).write_bytes(harm(original, rng))
        try:
            assert everything(path) == before  # a blank more or less in JSON changes nothing
        except StoreError as error:
            told.append(str(error))
    assert len(told) >= (1 if harm is vanish else 15)
    assert [sentence for sentence in told if Path(name).name not in sentence] == []


@pytest.mark.parametrize("name", [name for name in FILES if name != "findings.json"])
def test_a_missing_file_is_named(whole: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / whole.name
    shutil.copytree(whole, path)
    (path / name).unlink()
    with pytest.raises(StoreError, match=Path(name).name) as caught:
        everything(path)
    assert "is missing" in str(caught.value)


def test_without_its_result_a_run_is_unfinished(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / whole.name
    shutil.copytree(whole, path)
    (path / "findings.json").unlink()
    assert Run.open(path).conclusion() is None
