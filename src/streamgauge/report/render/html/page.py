"""A run as one HTML file: no network, no file beside it; readable without JavaScript except for the charts."""

from importlib.resources import files

from streamgauge.report.render.html.bounds_svg import verdict_key
from streamgauge.report.render.html.markup import Child, Markup, element, join, json_script, table
from streamgauge.report.render.html.sections import finding_section, published_section, stages_section
from streamgauge.report.view.findings import as_sentence
from streamgauge.report.view.page import PageView
from streamgauge.report.view.time_breakdown import PARTS, TimeBreakdown

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""Nothing is loaded from another place, whatever a name in the run contains."""

VERDICTS = {
    "SUSTAINED": "every objective was met at this load",
    "OVERLOADED": "an objective was missed at this load: the lag or the latency grew, or a limit was exceeded",
    "FAILED": "the system under test crashed, stalled, disconnected, or its outputs were lost, duplicated or wrong",
    "INVALID": "the load driver or the machine failed: the trial proves nothing about the system under test and is "
    "repeated",
    "UNDECIDED": "the trial did not allow a decision, for example because of noise; its reason gives the cause",
}


def render_page(view: PageView) -> bytes:
    """The whole page. The same folder gives the same bytes, on any machine."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{view.run.name}: {_headline(view)}"),
        _style("vendor/uPlot.min.css"),
        _style("page.css"),
    )
    body = element("body", element("main", *_parts(view)), _footer(view), *_scripts(view))
    text = f"<!doctype html>\n{element('html', head, body, lang='en').text}\n"
    return text.encode("utf-8", "backslashreplace")


def _parts(view: PageView) -> list[Child]:
    several = len(view.run.findings) > 1
    return [
        _header(view),
        _measured_on(view),
        *(stages_section(found, len(view.run.stages) > 1) for found in view.run.stages),
        *(finding_section(finding, several) for finding in view.run.findings),
        published_section(view.paper_workload, view.paper_note, view.paper_system) if view.paper_note else None,
        _charts(view),
        _spent(view.spent),
        _words(),
        _details(view),
    ]


def _headline(view: PageView) -> str:
    return " ".join(as_sentence(finding.sentence) for finding in view.run.findings) or "no result."


def _header(view: PageView) -> Markup:
    found = view.run.findings
    sentences = [
        element(
            "span",
            element("small", finding.heading) if finding.heading else None,
            as_sentence(finding.sentence),
            class_="answer",
        )
        for finding in found
    ]
    ended = element("p", f"Ended early: {view.run.ended}.", class_="warning") if view.run.ended else None
    name = element("p", "streamgauge · ", element("b", view.run.name), f" · {view.when}" if view.when else None)
    none = element("span", "No result.", class_="answer") if not found else None
    about = element("p", view.subject, class_="about") if view.subject else None
    return element(
        "header",
        name,
        about,
        element("h1", *sentences, none, class_="many" if len(found) > 1 else None),
        ended,
        element("p", view.run.checked),
    )


def _measured_on(view: PageView) -> Markup:
    pairs = [join((element("dt", label), element("dd", text))) for label, text in view.measured_on]
    return element("section", element("h2", "Test setup"), element("dl", *pairs))


def _charts(view: PageView) -> Markup | None:
    if not view.charts:
        return None
    left = f" The data of {view.not_charted} more trials are only in the run folder." if view.not_charted > 0 else ""
    return element(
        "section",
        element("h2", "Over time"),
        element(
            "p",
            "The horizontal axis shows seconds since the start of the load. The grey area is the warm-up, which does "
            "not count. Throughput counts the events that were sent and read per second. Latency is shown for "
            f"seconds with outputs, CPU time in cores.{left}",
            class_="hint",
        ),
        element("noscript", element("p", "The charts need JavaScript. The rest of this page does not.")),
        element("div", id="charts"),
    )


def _spent(spent: TimeBreakdown) -> Markup | None:
    if not spent.trials:
        return None
    heads = ["trial", *(f"{part}, s" for part in PARTS), "total, s"]
    rows: list[list[Child]] = [
        [str(time.trial), *(_seconds(part) for part in time.parts), _seconds(time.known)] for time in spent.trials
    ]
    total = sum(time.known for time in spent.trials)
    rows.append(["all", *(_seconds(part) for part in spent.totals), _seconds(total)])
    warming = (
        f"System, {spent.warm_up:.0f} s: starting and warming up the system under test." if spent.warm_up else None
    )
    rest = f"Other, {spent.other:.0f} s: {spent.other_is}." if spent.other is not None and spent.other >= 0.5 else None
    return element(
        "section",
        element("h2", "Time spent"),
        element("p", spent.sentence),
        _bars(spent),
        element("p", " ".join(text for text in (warming, rest) if text)) if warming or rest else None,
        element("details", element("summary", "All trials"), table(heads, rows, numbers=1, class_="totals")),
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _bars(spent: TimeBreakdown) -> Markup:
    """One bar for the whole run, its parts as wide as they are long."""
    parts = [(name, value) for name, value in zip(PARTS, spent.totals, strict=True) if value]
    if spent.warm_up:
        parts.insert(0, ("system", spent.warm_up))
    if spent.other is not None and spent.other >= 0.5:
        parts.append(("other", spent.other))
    whole = sum(value for _, value in parts) or 1.0
    bar = [
        element("i", class_=f"part-{name}", style=f"width:{value / whole:.2%}", title=f"{name} {value:.0f} s")
        for name, value in parts
    ]
    names = [
        element("span", element("i", class_=f"part-{name}"), f" {name} {value:.0f} s ({value / whole * 100:.0f} %)")
        for name, value in parts
    ]
    return join((element("div", *bar, class_="bar", aria_hidden="true"), element("p", *names, class_="keys")))


def _words() -> Markup:
    pairs = [
        join(
            (
                element("dt", verdict_key(word), element("b", word, class_=f"verdict {word.lower()}")),
                element("dd", meaning),
            )
        )
        for word, meaning in VERDICTS.items()
    ]
    return element("section", element("h2", "What the verdicts mean"), element("dl", *pairs))


def _details(view: PageView) -> Markup | None:
    parts: list[Child] = [
        element("details", element("summary", f"Effective settings of {label}"), table(("setting", "value"), pairs, 9))
        for label, pairs in view.settings
    ]
    if view.text:
        parts.append(element("details", element("summary", "The experiment file"), element("pre", view.text)))
    return element("section", element("h2", "Settings"), *parts) if parts else None


def _footer(view: PageView) -> Markup:
    made = f"measured with streamgauge {view.measured_by}, " if view.measured_by else ""
    return element(
        "footer",
        element("p", f"Run {view.run.id}, {made}page written by streamgauge {view.rendered_by}."),
        element("p", "Started with: ", element("code", view.command)) if view.command else None,
        element(
            "p",
            "To create this page again from the run folder: ",
            element("code", f"streamgauge report {view.run.id}"),
            ". To print all numbers: ",
            element("code", f"streamgauge show {view.run.id} --json"),
            ".",
        ),
    )


def _scripts(view: PageView) -> list[Markup]:
    if not view.charts:
        return []
    return [json_script("charts-data", view.charts), _script("vendor/uPlot.iife.min.js"), _script("page.js")]


def _packaged(name: str) -> str:
    return files("streamgauge.report.render.html").joinpath(*name.split("/")).read_text("utf-8")


def _style(name: str) -> Markup:
    return Markup(f"<style>\n{_packaged(name)}</style>")


def _script(name: str) -> Markup:
    return Markup(f"<script>\n{_packaged(name)}</script>")
