"""The topics that runs have left on an external Kafka cluster: only those with a run's id in their name."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.cli.cluster import open_cluster
from streamgauge.cli.console import Talk
from streamgauge.cli.errors import Trouble
from streamgauge.cli.inputs import load_experiment

if TYPE_CHECKING:
    from streamgauge.transports.kafka.brokers.admin import Administration
    from streamgauge.transports.kafka.cluster import Cluster


def clean_topics(experiment: str, runs: Sequence[str], out: Path, yes: bool, talk: Talk) -> None:
    """List the topics of runs, and delete them with ``yes``. Topics of a run in progress are kept."""
    from rich.text import Text

    from streamgauge.cli.kafka import client_or_trouble
    from streamgauge.report.render.json import document

    cluster = _cluster(experiment)
    client_or_trouble()

    from streamgauge.transports.kafka.brokers.admin import Administration
    from streamgauge.transports.kafka.brokers.start import until
    from streamgauge.transports.kafka.client.protocol import KafkaFailure

    try:
        admin = Administration(cluster, until)
        found = _held(admin, _chosen(admin.runs(), runs, out, talk))
        for item in found:
            talk.show(Text(f"{item['topic']}  {item['records']:,} records"))
        if yes:
            admin.delete([item["topic"] for item in found])
    except KafkaFailure as error:
        raise Trouble(f"{error}.") from None
    talk.say(_summary(found, cluster.bootstrap, yes))
    talk.end(document(0, deleted=yes, items=found))


def _cluster(experiment: str) -> "Cluster":
    from streamgauge.transports.kafka.options import kafka_options

    options = kafka_options(load_experiment(experiment, None).transport)
    if options is None or options.cluster is None:
        raise Trouble(
            f"{experiment} has no transport.cluster, so there is no external cluster to clean. Local brokers and their "
            "topics are removed when their run ends."
        )
    return open_cluster(options.cluster)


def _chosen(there: dict[str, tuple[str, ...]], named: Sequence[str], out: Path, talk: Talk) -> dict[str, Sequence[str]]:
    """The topics of the named runs, or of all runs; by run."""
    busy = _busy(out, there)
    for run in busy:
        talk.say(f"Run {run} is in progress. Its topics are kept.")
    wanted = [_run(each, there, out) for each in named] if named else [*there]
    return {run: there[run] for run in dict.fromkeys(wanted) if run not in busy}


def _run(named: str, there: dict[str, tuple[str, ...]], out: Path) -> str:
    """The id of the run with this id or prefix, or of @last."""
    from streamgauge.cli.inputs import find_run

    wanted = find_run(out, named).id if named.startswith("@") else named
    found = [run for run in there if run == wanted] or [run for run in there if run.startswith(wanted)]
    if len(found) != 1:
        what = "has no topics of run" if not found else f"has topics of {len(found)} runs whose ids start with"
        raise Trouble(f"The cluster {what} {wanted}. Runs with topics there: {', '.join(there) or 'none'}.")
    return found[0]


def _busy(out: Path, there: dict[str, tuple[str, ...]]) -> set[str]:
    """The ids of these runs that are in progress on this machine."""
    from streamgauge.cli.inputs import open_store
    from streamgauge.store import RunLocked

    store, busy = open_store(out), set[str]()
    for summary in store.runs():
        if summary.id in there and summary.state != "unreadable":
            try:
                with store.find(summary.id).lock():
                    continue
            except RunLocked:
                busy.add(summary.id)
    return busy


def _held(admin: "Administration", topics: dict[str, Sequence[str]]) -> list[dict[str, Any]]:
    ends = admin.ends([name for names in topics.values() for name in names]) if topics else {}
    return [
        {"run": run, "topic": name, "partitions": len(ends[name]), "records": sum(ends[name])}
        for run, names in topics.items()
        for name in names
    ]


def _summary(found: list[dict[str, Any]], where: str, deleted: bool) -> str:
    if not found:
        return f"Nothing to clean on the cluster at {where}."
    runs = len({item["run"] for item in found})
    things = f"{len(found)} topic{'s' * (len(found) != 1)} of {runs} run{'s' * (runs != 1)} on the cluster at {where}"
    return f"Deleted {things}." if deleted else f"{things}. Nothing was deleted; add --yes to delete."
