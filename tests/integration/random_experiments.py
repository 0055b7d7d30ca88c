"""Random experiments on the simulated engine: every key over its whole range, valid by construction or refused."""

import json
import math
import random
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

STRATEGIES = ("adaptive", "from-above", "linear", "binary", "full")
GRIDS = ("from-above", "linear", "full")
"""Strategies that try the values of a range one after the other."""
STATISTICS = ("avg", "min", "max", "p5", "p50", "p75", "p90", "p95", "p99", "p99.9")
FOLLOWED = ("keys", "frequency", "children", "height", "locations", "lanes")
"""Dimensions from which the load follows."""
FINDS = ("sustainable-throughput", "demand", "capacity", "extreme", "nothing")


@dataclass(frozen=True)
class Drawn:
    """An experiment, and whether its answer follows from the law of the simulated engine."""

    seed: int
    document: Document
    certain: bool

    @property
    def text(self) -> str:
        """The file; JSON is YAML."""
        return json.dumps(self.document, indent=1)


def draw(seed: int) -> Drawn:
    """The experiment of a seed. One in three is noiseless, with a constant load and a lag-trend to decide by."""
    return _Draw(seed).experiment()


class _Draw:
    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.certain = seed % 3 == 0

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def exponent(self, low: float, high: float) -> float:
        return 10 ** self.rng.uniform(math.log10(low), math.log10(high))

    def rate(self, low: float = 1.0, high: float = 9e9) -> str:
        return f"{self.exponent(low, high):.4g}/s"

    def time(self, low: float, high: float) -> str:
        """A duration between two numbers of seconds, in whole nanoseconds."""
        return f"{max(1, round(self.exponent(low, high) * 1e9))}ns"

    def share(self, most: float = 1.0) -> str:
        picked = self.rng.choice((0.0, most, self.exponent(1e-4, most), self.exponent(1e-4, most)))
        return f"{picked * 100:.4f}%"

    def some(self, options: Document, share: float = 0.4) -> Document:
        return {key: value for key, value in options.items() if self.chance(share)}

    def experiment(self) -> Drawn:
        what = self.rng.choice(FINDS)
        workload, dimension = self.workload(what)
        document: Document = {"name": f"random-{self.seed}", "workload": workload, "trial": self.trial()}
        document |= self.question(what, dimension)
        if what == "nothing" and "frequency" in workload and self.chance(0.3):
            document.pop("load")  # it follows from the workload
        engines = [self.engine(n) for n in range(self.rng.choice((1, 1, 1, 2, 3)))]
        if "instances" not in document and self.chance(0.2):
            engines[0]["instances"] = self.rng.choice((1, 3, 50))
        document |= {"engine": engines[0]} if len(engines) == 1 else {"engines": engines}
        document |= self.objective()
        if what != "nothing" and self.chance(0.7):
            document["search"] = self.search(what)
        rng = self.rng
        document |= self.some({"seed": rng.choice((0, 1, 2**63 - 1, rng.randrange(10**9), rng.randrange(2**63)))}, 0.5)
        rest = {"description": "drawn at random", "transport": rng.choice(("queue", {"name": "queue"}))}
        return Drawn(self.seed, document | self.some(rest, 0.1), self.certain)

    def windows(self) -> tuple[Document, Document]:
        """A window with its slide and its watermark, and other lengths of both in which a limit is searched."""
        slide = 16_000_000 * math.ceil(self.exponent(0.05, 30) * 1e9 / 16e6)  # windows have a common divisor of 1 ms
        window = round(slide * self.rng.choice((1, 1.5, 2, 10)))
        times = {"window": f"{window}ns", "slide": f"{slide}ns", "watermark": self.time(1e-3, 20)}
        longer, shorter = [f"{window * n}ns" for n in (1, 2, 8)], [f"{slide // n}ns" for n in (8, 2, 1)]
        return times, {"window": longer, "slide": shorter}

    def purchases(self, users: tuple[int, ...]) -> Document:
        """Parameters of purchases. Only some of several gem packs can be hot."""
        chosen = self.some(
            {
                "gem_packs": self.rng.choice((1, 100, 10**5)),
                "users": self.rng.choice(users),
                "distribution": self.rng.choice(("normal", "uniform", "zipf", "single")),
            }
        )
        if chosen.get("gem_packs") == 1 or self.chance(0.6):
            return chosen
        hot = {"hot": self.share(), "hot_packs": self.rng.choice((1, 3)), "hot_period": self.time(0.1, 100)}
        return chosen | self.some(hot, 0.7)

    def workload(self, what: str) -> tuple[Document, Document | None]:
        """A workload, and for an extreme a dimension of it with its values."""
        rng = self.rng
        times, lengths = self.windows()
        tumbling = {name: times[name] for name in ("window", "watermark")}
        keys = {"keys": rng.choice((1, 7, 1000, 10**6)), "frequency": self.rate(0.001, 1000)}
        pairs = {"ads": rng.choice(("30%", "50%", "80%")), "selectivity": rng.choice(("0.01%", "1%", "40%"))}
        roads = {
            "locations": rng.choice((1, 50, 6500)),
            "lanes": rng.randint(1, 6),
            "frequency": self.rate(0.001, 1000),
            "stage": rng.randint(0, 4),
        }
        tower = {
            "children": rng.randint(1, 6),
            "height": rng.randint(1, 6),
            "frequency": keys["frequency"],
            "heartbeat": rng.choice(("1s", "10s", "1m")),
            "moves": self.share(),
        }
        attributes = {"attribute": rng.choice(("day-of-week", "hour-of-week")), "attribute_values": rng.randint(1, 7)}
        # half of the workloads that default to windows of days have short ones
        short, span = (times, lengths) if self.chance(0.5) else ({}, {"window": ["3d", "7d", "60d"]})
        sensors: Document = {"keys": [10, 100, 5000], "frequency": ["0.01/s", "1/s", "100/s"]}
        packs: Document = {"gem_packs": [1, 10, 1000], "users": [1, 10, 1000]}
        groups = {"height": [1, 2, 3], "children": [1, 2, 5], "frequency": sensors["frequency"], **lengths}
        choices: list[tuple[Document, Document]] = [
            ({"name": "windowed-aggregation", "window": "8s", "slide": "4s"}, {"slide": ["500ms", "2s", "4s"]}),
            ({"name": "windowed-aggregation", **times, **self.purchases((1, 10**5))}, {**packs, **lengths}),
            (
                {"name": "windowed-join", **times, **self.purchases((10**3, 10**5)), **self.some(pairs)},
                {"users": [1000, 10_000], "gem_packs": [10, 1000], **lengths},
            ),
            ({"name": "ingest", **self.purchases((1, 10**5))}, packs),
            (
                {"name": "traffic", **self.some(roads), **self.some(tumbling)},
                {"locations": [1, 10, 1000], "lanes": [1, 2, 4], "frequency": sensors["frequency"], "window": ["1s"]},
            ),
            ({"name": "database-storage", **self.some(keys)}, sensors),
            ({"name": "downsampling", **self.some(keys), **self.some(tumbling)}, {**sensors, "window": ["1s", "1m"]}),
            (
                {"name": "time-attribute-aggregation", **self.some(keys), **short, **self.some(attributes)},
                {**sensors, **span, "attribute_values": [1, 3, 7]},
            ),
            ({"name": "hierarchical-aggregation", **self.some(tower), **times}, groups),
            ({"name": "hierarchical-aggregation", **self.some(tower), **self.some(tumbling)}, {"height": [1, 2, 3]}),
        ]
        workload, dimensions = rng.choice(choices)
        name, values = rng.choice(list(dimensions.items()))
        searched = {"between": [values[0], values[-1]]} if len(values) > 1 and self.chance(0.3) else {"values": values}
        return workload, {"extreme": name, **searched} if what == "extreme" else None

    def trial(self) -> Document:
        rng = self.rng
        length = self.exponent(1, 120) if self.chance(0.97) else self.exponent(120, 20_000)
        # 1 in 50 is longer than the limit and refused
        limit = self.exponent(length, 5 * length) * (1 if self.chance(0.98) else 0.5)
        trial = {"duration": f"{max(1, length):.3f}s", "limit": f"{max(1, limit):.3f}s"}
        warmup = rng.choice(("auto", "0s", self.time(0.01, limit), None))
        if warmup is not None:
            trial["warmup"] = warmup
        options: Document = {
            "warmup_limit": self.time(0.01, limit),
            "repetitions": rng.choice((1, 1, 1, 2, 3)),
            "early": rng.choice((True, False)),
            "queue_bound": rng.choice((0, 1, round(self.exponent(1, 1e9)))),
            "invalid_retries": rng.choice((0, 1, 5)),
            "partitions": rng.choice((0, 1, 64)),
            "drivers": rng.choice((1, 3)),
            "stall": self.time(1, 100),
        }
        if self.certain:
            options.pop("queue_bound")
        return trial | self.some(options, 0.25)

    def question(self, what: str, dimension: Document | None) -> Document:
        rng = self.rng
        low = self.exponent(1, 1e8)
        high = min(low * self.exponent(1.01, 1e4), 9e9)
        loads = sorted({float(f"{self.exponent(low, high):.3g}") for _ in range(rng.randint(1, 6))})
        values: Document = {"values": [f"{load:.6g}/s" for load in loads]}
        span: Document = {"between": [f"{low:.6g}/s", f"{high:.6g}/s"]}
        if self.chance(0.4) or what == "nothing":
            span = values
        searched = what in ("sustainable-throughput", "demand", "capacity") or (what == "nothing" and self.chance(0.2))
        load = span if searched else {"rate": f"{low:.6g}/s"}
        if not self.certain and self.chance(0.35):
            load = {**self.profile(low), **(span if searched else {})}
        elif self.chance(0.2):
            load = {"profile": "constant", **load}
        document: Document = {"find": dimension or what, "load": load}
        follows = dimension is not None and dimension["extreme"] in FOLLOWED
        if follows and self.chance(0.95):
            document.pop("load")  # it follows from the dimension
        return document | self.instances(what)

    def instances(self, what: str) -> Document:
        """For how many instances: of a demand and a capacity several, else one number or none."""
        rng = self.rng
        most = rng.choice((2, 5, 40, 200, 100_000))
        counts: Any = sorted(rng.sample(range(1, max(most, 6)), rng.randint(1, 5)))
        counts = rng.choice((counts, {"values": counts}))
        if what == "demand" and self.chance(0.6):
            counts = {"between": [1, most]}
        if what in ("demand", "capacity") or (what == "nothing" and self.chance(0.2)):
            return {"instances": counts}
        return self.some({"instances": rng.choice((1, 2, 40))}, 0.1)

    def profile(self, rate: float) -> Document:
        rng, over = self.rng, self.time(1, 200)
        low, high = f"{rate * rng.choice((0, 0.1, 1)):.6g}/s", f"{rate * rng.choice((1, 2, 50)):.6g}/s"
        every = self.exponent(1, 60)
        fluctuating = self.some({"low": rng.choice((self.share(0.9), low)), "over": over}, 0.7)
        spikes = {
            "base": low,
            "peak": f"{rate * 60:.6g}/s",
            "every": f"{every:.3f}s",
            "length": f"{every * rng.uniform(0.01, 0.9):.3f}s",
        }
        return rng.choice(
            (
                {"profile": "ramp", "from": low, "to": high, "over": over},
                {"profile": "steps", "steps": [[over, low], [over, high], [over, low]]},
                {"profile": "fluctuating", "rate": f"{rate:.6g}/s", **fluctuating},
                {"profile": "replay", "rates": [low, high, low, high], **self.some({"step": over}, 0.8)},
                {"profile": "spikes", **spikes, **self.some({"over": over})},
            )
        )

    def engine(self, number: int) -> Document:
        rng = self.rng
        engine: Document = {"name": "simulated", "label": f"e{number}", "capacity": self.rate(10, 1e9)}
        if self.certain:
            scaling = {"contention": self.share(0.5), "coherence": self.share(0.05)}
            return engine | self.some(scaling | {"delay": self.time(1e-6, 1), "delay_spread": rng.uniform(0, 3)})
        every = self.exponent(1e-3, 100)
        interval = self.exponent(1e-3, 100)
        options: Document = {
            "capacity": self.rate(1e-3, 1e15),
            "contention": self.share(),
            "coherence": self.share(),
            "warmup": self.time(1e-3, 1000),
            "noise": self.share(),
            "noise_memory": rng.choice((0, 0.5, 0.999, rng.random())),
            "delay": self.time(1e-9, 10_000),
            "delay_spread": rng.uniform(0, 3),
            "crash_at": self.rate(),
            "lose": self.share(),
            "duplicate": self.share(),
            "alter": self.share(),
        }
        share = 0.25
        if self.chance(0.25):
            engine |= {"batch_interval": f"{round(interval * 1e9)}ns"} | self.some(
                {"batch_cost": f"{round(interval * rng.uniform(0, 1.02) * 1e9)}ns"}
            )
        if self.chance(0.25):
            engine |= {"pause_every": f"{round(every * 1e9)}ns"} | self.some(
                {"pause": f"{round(every * rng.uniform(0, 1.02) * 1e9)}ns"}
            )
        return engine | self.some(options, share)

    def objective(self) -> Document:
        rng = self.rng
        if self.certain:
            return {"objective": rng.choice((["lag-trend <= 1%", "lost == 0"], [f"lag-trend <= {self.share(0.3)}"]))}
        growth = rng.choice((f"{self.exponent(0.01, 99):.4f}%", self.rate(0.01, 1e6)))
        some = [
            f"lag-trend {rng.choice(('<', '<='))} {growth}",
            f"latency-trend <= {self.time(1e-6, 10)}/s",
            f"output-error <= {self.share()}",
            f"lag-growth <= {rng.choice((self.share(), '100'))}",
            f"queue <= {rng.choice(('500%', '1', '5M'))}",
            f"drops {rng.choice(('== 0', '<= 3'))}",
            f"event-time {rng.choice(STATISTICS)} < {self.time(1e-3, 100)}",
            f"processing-time {rng.choice(STATISTICS)} <= {self.time(1e-3, 100)}",
            f"lost <= {self.share()}",
            f"duplicate <= {rng.choice((self.share(), '5'))}",
            f"wrong <= {self.share()}",
            "late == 0",
        ]
        return {"objective": rng.sample(some, rng.randint(1, 4))} if self.chance(0.8) else {}

    def search(self, what: str) -> Document:
        strategy = self.rng.choice(STRATEGIES)
        search: Document = {"strategy": strategy}
        if self.chance(0.5) or strategy in GRIDS:
            search["precision"] = f"{self.exponent(10 if strategy in GRIDS else 0.5, 90):.3g}%"
        if what == "demand" and self.chance(0.3):
            search["lower_bound"] = self.chance(0.5)
        if what == "sustainable-throughput" and self.chance(0.3):
            search["also"] = ["90%", "50%"][: self.rng.randint(1, 2)]
        if self.chance(0.15):
            search["starts"] = self.rng.choice((1, 2, 3))
        return search
