"""The sections of the page about one result: what limited it, the bounds, every trial, latency."""

from collections.abc import Sequence

from streamgauge.model.units import format_count, format_rate
from streamgauge.report.render.html.bounds_svg import bracket_picture
from streamgauge.report.render.html.markup import Child, Markup, element, table
from streamgauge.report.view import paper_figures, stages
from streamgauge.report.view.findings import FindingView, TrialRow, as_sentence, searched_name
from streamgauge.report.view.latency import PERCENTILES, LatencyLine, footnote
from streamgauge.report.view.limits import LimitingFactor, LimitingFactors


def finding_section(finding: FindingView, titled: bool) -> Markup:
    """One result with the trials behind it."""
    return element(
        "section",
        element("h2", finding.title or finding.engine, class_="finding") if titled else None,
        *_why(finding.why),
        *_bracket(finding),
        *_circumstances(finding),
        *_latency(finding.latencies),
        element("p", as_sentence(finding.no_latency)) if finding.no_latency else None,
        element("p", as_sentence(finding.updates)) if finding.updates else None,
        element("p", as_sentence(finding.early)) if finding.early else None,
        class_="finding",
    )


def _why(why: LimitingFactors | None) -> list[Child]:
    if why is None:
        return []
    stopped = why.where == "fails"
    shares = any(limit.share is not None for limit in why.limits)
    lead = f"Trial {why.trial}, at {why.load}, {'which failed' if stopped else 'which passed'}:"
    return [
        element("h2", "What limited the throughput" if stopped else "How busy it was"),
        element("p", lead),
        element("ul", *(_limit(limit, shares) for limit in why.limits), class_="limits"),
    ]


def _limit(limit: LimitingFactor, shares: bool) -> Markup:
    """A sentence, with its share as a bar where it has one; ``shares``: whether any of them has."""
    if limit.share is None:
        return element("li", element("span", class_="meter none") if shares else None, as_sentence(limit.sentence))
    full = min(max(limit.share, 0.0), 1.0)
    meter = element("span", element("i", style=f"width:{full:.1%}"), class_="meter", title=f"{limit.share * 100:.1f} %")
    return element("li", meter, as_sentence(limit.sentence))


def _bracket(finding: FindingView) -> list[Child]:
    if not finding.rows:
        return []
    ends = [
        f"passed at {finding.holds}" if finding.holds else "",
        f"failed at {finding.fails}" if finding.fails else "",
    ]
    width = f"{finding.precision} apart" if finding.precision else ""
    count = f"{len(finding.rows)} trial{'' if len(finding.rows) == 1 else 's'}, {finding.time} of trial time"
    return [
        element("h2", "Result and trials"),
        element("p", as_sentence(", ".join(part for part in (*ends, width, count) if part))),
        element("ul", *(element("li", as_sentence(note)) for note in finding.notes)) if finding.notes else None,
        bracket_picture(finding),
        _trials(finding),
    ]


def _circumstances(finding: FindingView) -> list[Child]:
    if not finding.circumstances:
        return []
    return [
        element("h2", "Circumstances"),
        element("ul", *(element("li", as_sentence(note)) for note in finding.circumstances)),
    ]


def _trials(finding: FindingView) -> Markup:
    own_value = any(row.value != row.load for row in finding.rows)
    several = any(row.start > 1 for row in finding.rows)
    heads: list[Child] = ["trial", *(["start"] if several else []), "purpose", "verdict", "reason", "role"]
    heads += [searched_name(finding)] if own_value else []
    heads += ["load", "lag growth", "avg latency", "duration"]
    return table(
        heads, (_trial(row, own_value, several) for row in finding.rows), numbers=6 if several else 5, class_="trials"
    )


def _trial(row: TrialRow, own_value: bool, several: bool) -> list[Child]:
    verdict = element("b", row.verdict, class_=f"verdict {row.verdict.lower()}")
    log = (
        element("details", element("summary", "end of its log"), element("pre", "\n".join(row.log)))
        if row.log
        else None
    )
    because = element("div", row.reason, log)
    cells: list[Child] = [
        str(row.number),
        *([str(row.start)] if several else []),
        row.purpose,
        verdict,
        because,
        row.role,
    ]
    cells += [row.value] if own_value else []
    return [*cells, row.load, row.trend, row.latency, f"{row.seconds} s"]


def _latency(lines: Sequence[LatencyLine]) -> list[Child]:
    if not lines:
        return []
    heads = ("latency", "at", "load", "trial", "avg", "min", "max", *PERCENTILES, "rows", "window results")
    note = footnote(lines)
    published = any(line.kind == "publication-time" for line in lines)
    return [
        element("h2", "Latency"),
        table(heads, (_latency_row(line) for line in lines), numbers=2),
        element(
            "p",
            "Event-time latency is the time from the planned send time of the newest event of a window until its "
            "result was emitted, so it includes waiting in the queue. Processing-time latency starts when the system "
            "read the event of the window that it read last. With a broker it starts when the broker appended this "
            "event, so it includes waiting in the broker. Statistics are over rows, which are not independent: the "
            "rows of one window result leave the system together."
            f"{_PUBLICATION if published else ''}"
            f"{' ' + as_sentence(note) if note else ''}",
            class_="hint",
        ),
    ]


_PUBLICATION = (
    " Publication-time latency starts at the mean time of publication of all events that an output was made from."
)


def _latency_row(line: LatencyLine) -> list[Child]:
    start: list[Child] = [line.kind, line.at, line.load, str(line.trial), line.average, line.least, line.most]
    return [*start, *line.percentiles, format_count(line.rows), str(line.firings)]


def stages_section(found: stages.StageTable, several: bool) -> Markup:
    """The latency of each stage, next to what van Dongen et al. measured."""
    published = found.has_published
    return element(
        "section",
        element("h2", f"Latency of each stage{f' of {found.engine}' if several else ''}"),
        table(stages.columns(found), stages.cells(found), numbers=stages.TEXTS),
        element("p", as_sentence(stages.note(found)), class_="hint"),
        element("p", f"{paper_figures.STAGES_SETUP}.", class_="hint") if published else None,
        element("p", paper_figures.STAGES_CITATION, class_="hint") if published else None,
        class_="stages",
    )


def published_section(workload: str, beside: str, same: str = "") -> Markup:
    """Karimov's tables on a workload, marked as what they are; the rows of the ``same`` system stand out."""
    published = paper_figures.PUBLISHED[workload]

    def named(system: str) -> Child:
        return element("mark", system) if system == same else system

    nodes = [f"{count} nodes" for count in paper_figures.NODES]
    rates = [[named(system), *(format_rate(rate) for rate in row)] for system, row in published.throughput.items()]
    heads = ("system", "at", "nodes", "avg", "min", "max", "p90", "p95", "p99")
    latencies = [
        [
            named(row.system),
            row.share,
            str(row.nodes),
            *(f"{value:g} s" for value in (row.average, row.least, row.most, row.p90, row.p95, row.p99)),
        ]
        for row in published.latency
    ]
    return element(
        "section",
        element("h2", "For orientation: Karimov et al., 2018"),
        element("p", element("strong", beside)),
        element("p", f"{published.setup}.", class_="hint"),
        element(
            "div",
            element(
                "div",
                element("h3", f"Table {published.tables[0]}: sustainable throughput"),
                table(["system", *nodes], rates, numbers=1),
            ),
            element(
                "div",
                element("h3", f"Table {published.tables[1]}: event-time latency"),
                table(heads, latencies, numbers=1),
            ),
            class_="beside",
        ),
        element("p", paper_figures.CITATION, class_="hint"),
        class_="published",
    )
