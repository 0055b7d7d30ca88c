"""An engine of another package: windowed sums in plain Python, in one process with one loop over Kafka's topics."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager

from streamgauge.engines import contract, toolkit, toolkit_kafka

COLUMNS = ("window_start", "window_end", "gem_pack_id", "sum", "count", "max_due", "max_ingested")


class PlainOptions(contract.Options):
    poll: int = 10_000


class PlainPython:
    name, summary, options = "plain-python", "a loop in plain Python over Kafka, as an example", PlainOptions
    jobs = (contract.Job("windowed-aggregation", transports=frozenset({"kafka"})),)

    def check(self, situation: contract.Situation[PlainOptions]) -> Sequence[str]:
        return () if situation.options.poll > 0 else ("poll must be at least 1",)

    def requirements(self, options: PlainOptions, transport: str) -> Sequence[contract.Requirement]:
        return (toolkit.python_package("confluent-kafka"),)

    def layout(self, options: PlainOptions, instances: int) -> contract.Layout:
        return toolkit.one_instance(instances)

    def traits(self, options: PlainOptions) -> contract.Traits:
        return contract.Traits(batch_interval_ns=100_000_000)

    def start(
        self, layout: contract.Layout, options: PlainOptions, host: contract.Host
    ) -> AbstractContextManager[contract.System]:
        def deploy(run: contract.JobRun[PlainOptions]) -> toolkit.ProcessDeployment:
            child = toolkit.python_child(self.name, __name__, run, host)
            return toolkit_kafka.kafka_deployment(child, run, version="1.0")

        return toolkit.per_trial(deploy)


def main() -> None:
    windows: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    with toolkit_kafka.kafka_job() as job:
        size, slide = job.params["window"] // 1_000, job.params["slide"] // 1_000
        while job.running():
            for event in job.poll(job.options["poll"]):
                for start in range(event["due"] // slide * slide, event["due"] - size, -slide):
                    row = windows[start, event["gem_pack_id"]]
                    row[:2] = row[0] + event["price"], row[1] + 1
                    row[2:] = max(row[2], event["due"]), max(row[3], event["ingested"])
            closed = sorted(key for key in windows if key[0] + size <= job.low_watermark())
            rows = [(start, start + size, pack, *windows.pop((start, pack))) for start, pack in closed]
            job.write([dict(zip(COLUMNS, row, strict=True)) for row in rows])
            job.commit()


engine = PlainPython()
if __name__ == "__main__":
    main()
