"""What a Spark session is told, by profile and option."""

from pathlib import Path

import pytest

from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.settings import query_settings, session_settings, shuffle_partitions, slots

FOLDER, RUNTIME = Path("/runs/x y/sessions/001"), Path("/dev/shm/short")  # noqa: S108
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


def test_everything_spark_writes_goes_into_the_folder_of_the_session_also_if_it_has_a_space() -> None:
    settings = session_settings(SparkOptions(), FOLDER, RUNTIME)
    assert settings["spark.local.dir"] == str(FOLDER / "tmp" / "spark")
    assert settings["spark.sql.warehouse.dir"] == str(FOLDER / "tmp" / "warehouse")
    assert settings["spark.python.unix.domain.socket.dir"] == str(RUNTIME), "paths of sockets must be short"
    assert f'-Djava.io.tmpdir="{FOLDER / "tmp"}"' in settings["spark.driver.extraJavaOptions"]


def test_it_listens_on_loopback_and_shows_no_page() -> None:
    settings = session_settings(SparkOptions(), FOLDER, RUNTIME)
    assert (settings["spark.driver.host"], settings["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")
    assert settings["spark.ui.enabled"] == "false"


def test_defaults_leave_spark_as_it_comes_and_tuned_does_not() -> None:
    tuned, plain = (session_settings(SparkOptions(profile=p), FOLDER, RUNTIME) for p in ("tuned", "defaults"))
    assert "spark.sql.streaming.checkpointFileManagerClass" in tuned
    assert "spark.sql.streaming.checkpointFileManagerClass" not in plain
    assert (tuned["spark.sql.shuffle.partitions"], plain["spark.sql.shuffle.partitions"]) == ("1", "200")


@pytest.mark.parametrize(("cores", "asked", "have"), [(1, 0, 1), (3, 0, 3), (2, 5, 5)])
def test_slots_and_partitions_follow_the_cores_by_default(cores: int, asked: int, have: int) -> None:
    options = SparkOptions(cores=cores, slots=asked)
    assert (slots(options), shuffle_partitions(options)) == (have, have)


def test_state_lives_on_the_heap_or_in_rocksdb_with_its_changelog() -> None:
    heap, rocks = (query_settings(SparkOptions(state_store=s)) for s in ("memory", "rocksdb"))
    assert heap[PROVIDER].endswith("HDFSBackedStateStoreProvider")
    assert rocks[PROVIDER].endswith("RocksDBStateStoreProvider")
    assert rocks["spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"] == "true"


def test_the_users_own_settings_win_everywhere() -> None:
    mine = {"spark.sql.shuffle.partitions": "7", "spark.ui.enabled": "true"}
    options = SparkOptions(settings=mine)
    assert session_settings(options, FOLDER, RUNTIME) | mine == session_settings(options, FOLDER, RUNTIME)
    assert query_settings(options)["spark.sql.shuffle.partitions"] == "7"
