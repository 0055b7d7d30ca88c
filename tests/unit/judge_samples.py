"""Trials and recordings to judge, built from a few numbers: lag by second, what the driver did, how it ended."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from streamgauge.model.measurement import Interval
from streamgauge.model.objective import Metric, Objective, Operator, Statistic
from streamgauge.model.profile import constant
from streamgauge.model.seconds import WINDOW_KINDS, Account, Kind, Latencies, Seconds
from streamgauge.model.trial import Ending, Outcome, Purpose, Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets

Floats = npt.NDArray[np.float64]

LOAD = 100_000.0
CHECKED = Account(expected=10_000, observed=10_000, checked=True)


def objective(
    metric: Metric, op: Operator, threshold: float, *, relative: bool = False, statistic: Statistic | None = None
) -> Objective:
    """An objective, written out."""
    shown = f"{threshold:.0%}" if relative else f"{threshold:g}"
    text = " ".join(part for part in (metric, statistic, op, shown) if part)
    return Objective(metric, op, threshold, relative, statistic, text)


LAG = objective("lag-trend", "<=", 0.01, relative=True)


def trial(
    load: float = LOAD,
    purpose: Purpose = "confirm",
    *,
    duration: int = 60,
    limit: int = 300,
    warmup: int | None = 0,
    warmup_limit: int = 60,
    queue_bound: int = 0,
    seed: int = 1,
) -> Trial:
    """A trial with its lengths in seconds."""
    return Trial(
        number=1,
        ask=TrialRequest("load", load, purpose),
        workload="ingest",
        params={},
        engine="simulated",
        options={},
        instances=1,
        profile=constant(load),
        duration=duration * SECOND,
        limit=limit * SECOND,
        warmup=None if warmup is None else warmup * SECOND,
        warmup_limit=warmup_limit * SECOND,
        queue_bound=queue_bound,
        seed=seed,
    )


def walk(growth: float, length: int = 60, noise: float = 0.01, seed: int = 1, load: float = LOAD) -> Floats:
    """Lag at the end of each second: it grows by a share of the load, with noise in each step."""
    shock = np.random.default_rng(seed).standard_normal(length)
    return load * (1.0 + np.cumsum(growth + noise * (shock - shock.mean())))


def latencies(values: Sequence[tuple[int, int, int]]) -> Latencies:
    """(second, nanoseconds, rows) each."""
    table = np.array(values, np.int64).reshape(-1, 3)
    return Latencies(table[:, 0], buckets.index(table[:, 1] // 1000), table[:, 2])


def windowed(values: Sequence[tuple[int, int, int]], kind: Kind = "event-time") -> dict[Kind, Latencies]:
    """(second, nanoseconds, rows) of window results: of their rows, and one count of each."""
    return {kind: latencies(values), WINDOW_KINDS[kind]: latencies([(s, n, 1) for s, n, _ in values])}


def seconds(
    lag: npt.ArrayLike,
    load: float = LOAD,
    kinds: dict[Kind, Latencies] | None = None,
    firings: int = 0,
    send_delay: float = 0,
    **columns: float,
) -> Seconds:
    """A second per value of ``lag``, acknowledged at its end. ``columns`` are the same in every second."""
    level = np.rint(np.asarray(lag, np.float64)).astype(np.int64)
    n = len(level)
    rate = np.full(n, int(load), np.int64)
    table = {
        "offered": rate,
        "published": rate,
        "served": rate - np.diff(level, prepend=0),
        "acknowledged": rate - np.diff(level, prepend=0),
        "acks": np.ones(n, np.int64),
        "ack_time": np.arange(1, n + 1, dtype=np.int64) * SECOND,
        "ack_lag": level,
        "queue": level,
        "firings": np.full(n, firings, np.int64),
    }
    table |= {name: np.full(n, int(value), np.int64) for name, value in columns.items()}
    late: dict[Kind, Latencies] = {"send-delay": latencies([(s, int(send_delay), int(load)) for s in range(n)])}
    return Seconds(0, table, (late if send_delay else {}) | (kinds or {}))


def recording(
    lag: npt.ArrayLike | None = None,
    *,
    of: Trial | None = None,
    ending: Ending = "completed",
    detail: str = "",
    log_tail: tuple[str, ...] = (),
    account: Account = CHECKED,
    disturbances: tuple[str, ...] = (),
    kinds: dict[Kind, Latencies] | None = None,
    firings: int = 0,
    **columns: float,
) -> Recording:
    """What happened; without a ``lag`` the queue stays flat."""
    chosen = of or trial()
    level = walk(0.0) if lag is None else lag
    happened = seconds(level, chosen.load, kinds, firings, **columns)
    return Recording(chosen, happened, Outcome(ending, detail, log_tail, account, disturbances))


def interval(mean: float, error: float, samples: int = 60) -> Interval:
    return Interval(mean, mean - 2 * error, mean + 2 * error, error, samples, 0.0, samples - 1.0)
