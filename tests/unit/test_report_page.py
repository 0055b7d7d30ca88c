"""The page: everything in it, nothing from outside, and no name that becomes markup."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

from report_samples import EXPLAINED, FINDING, RECORDED, REPORT, judged

from streamgauge.model.facts import Explanation
from streamgauge.model.finding import Bound
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Outcome
from streamgauge.report.render.html.bounds_svg import bracket_picture
from streamgauge.report.render.html.page import VERDICTS, render_page
from streamgauge.report.view.findings import view_run
from streamgauge.report.view.page import view_page
from streamgauge.report.view.run_report import RunReport

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&<!--\u2028"


def page(report: RunReport = REPORT) -> str:
    return render_page(view_page(report, RECORDED)).decode("utf-8")


class Reader(HTMLParser):
    """What a browser would see: the elements, their attributes, the text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.scripts.append(data)
        elif inside != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_the_page_contains_every_part() -> None:
    text = Reader(page()).text
    for said in (
        "Sustainable throughput: 100k events/s passed, 104k events/s failed (4.0 % apart).",
        "Outputs were checked: 400 rows of 4 trials",
        "AMD EPYC, 2 cores, virtual machine",
        "the system under test on core 1",
        "What limited the throughput",
        "Its core was 97 % busy.",
        "102k/s could not be decided (trial 4).",
        "the queue grows by 900k/s [of 1M/s]",
        "Table I: sustainable throughput",
        "Table II: event-time latency",
        "The windows of the paper, 8 s every 4 s, are the same as here.",
        "doi:10.1109/ICDE.2018.00169",
        "Time spent",
        "streamgauge report 20260101-120000-x-ab",
        "streamgauge run x",
        "measured with streamgauge 0.1.0",
        *VERDICTS.values(),
    ):
        assert said in text, said


def test_every_element_is_closed_where_it_was_opened() -> None:
    assert Reader(page()).open == []


def test_nothing_is_loaded_from_anywhere() -> None:
    reader = Reader(page())
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(reader.tags)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in reader.attributes}
    assert "@import" not in page()
    assert "url(" not in page()
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'") in reader.attributes


def hostile_report() -> RunReport:
    """A run in which every text that a user, an engine or a log can choose is an attack."""
    facts = replace(
        EXPLAINED,
        engine=replace(EXPLAINED.engine, name=HOSTILE, settings={**EXPLAINED.engine.settings, HOSTILE: HOSTILE}),
        placement=HOSTILE,
        explanation=(Explanation(HOSTILE, 0.5, HOSTILE),),
    )
    bad = judged(3, 1.04e5, VerdictKind.FAILED, "confirm", HOSTILE, facts=facts)
    bad = replace(bad, trial=replace(bad.trial, engine=HOSTILE), outcome=Outcome("crashed", HOSTILE, (HOSTILE,)))
    finding = replace(FINDING, engine=HOSTILE, sentence=HOSTILE, notes=(HOSTILE,), holds=None, also=())
    assert REPORT.asked is not None
    return replace(
        REPORT,
        run=HOSTILE,
        experiment=HOSTILE,
        findings=(finding, replace(FINDING, line=HOSTILE)),
        trials=(bad,),
        ended=HOSTILE,
        asked=replace(REPORT.asked, name=HOSTILE, description=HOSTILE),
        text=HOSTILE,
        environment={"cpu": {"model": HOSTILE}},
        command=("x", HOSTILE),
        version=HOSTILE,
    )


def test_no_name_becomes_markup() -> None:
    reader = Reader(page(hostile_report()))
    assert "img" not in reader.tags
    assert reader.tags.count("script") == 3  # the data, the renderer, the page's own
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert "<img src=x onerror=alert(2)>" in reader.text  # it is shown, as text
    assert reader.open == []


def test_the_data_of_the_charts_survives_a_hostile_name_unchanged() -> None:
    [data, *_] = Reader(page(hostile_report())).scripts
    assert "<" not in data
    assert json.loads(data)[0]["engine"] == HOSTILE


def test_the_packaged_scripts_cannot_end_their_own_element() -> None:
    assert [script.count("</") for script in Reader(page()).scripts[1:]] == [0, 0]


def test_the_same_folder_gives_the_same_bytes() -> None:
    assert page() == page()


def test_a_run_that_found_nothing_still_has_a_page() -> None:
    text = Reader(page(replace(REPORT, findings=(), trials=(), ended="it was interrupted"))).text
    assert "No result." in text
    assert "Ended early: it was interrupted." in text
    assert "Correctness is unchecked: no trial was finished." in text


def test_the_last_words_of_a_crashed_system_are_there() -> None:
    crashed = judged(3, 1.04e5, VerdictKind.FAILED, "confirm", "its process ended with 1")
    crashed = replace(crashed, outcome=Outcome("crashed", "", ("java.lang.OutOfMemoryError: heap",)))
    assert "java.lang.OutOfMemoryError: heap" in Reader(page(replace(REPORT, trials=(crashed,)))).text


def test_another_workload_has_no_tables_of_karimov() -> None:
    assert REPORT.asked is not None
    other = replace(REPORT.asked, workload=replace(REPORT.asked.workload, name="downsampling"))
    assert "Karimov" not in Reader(page(replace(REPORT, asked=other))).text


def test_other_windows_than_the_papers_are_reported_to_be_others() -> None:
    assert REPORT.asked is not None
    other = replace(REPORT.asked, workload=replace(REPORT.asked.workload, params={"window": 1, "slide": 1}))
    assert "8 s every 4 s, are not those of this run" in Reader(page(replace(REPORT, asked=other))).text


def marks(svg: str) -> list[str]:
    return re.findall(r'class="mark (\w+)"', svg)


def test_the_chart_has_a_mark_for_every_trial_and_the_bounds() -> None:
    picture = bracket_picture(view_run(REPORT).findings[0])
    assert picture is not None
    assert marks(picture.text) == ["overloaded", "sustained", "overloaded", "sustained"]
    assert "passed 100k/s" in picture.text
    assert "failed 104k/s" in picture.text


def test_the_picture_is_logarithmic_and_stays_inside_its_frame() -> None:
    view = view_run(REPORT).findings[0]
    rows = tuple(replace(row, at=at) for row, at in zip(view.rows, (1e3, 1e4, 1e5, 1e6), strict=True))
    picture = bracket_picture(replace(view, rows=rows, ends=(1e4, 1e5)))
    assert picture is not None
    xs = [float(x) for x in re.findall(r'x2="([\d.]+)" y1="[\d.]+" y2="[\d.]+" class="row"', picture.text)]
    steps = [right - left for left, right in pairwise(xs)]
    assert len(steps) == 3
    assert max(steps) - min(steps) < 0.3
    assert 0 < min(xs) < max(xs) < 960


def test_where_fewer_is_harder_the_failing_end_may_lie_left() -> None:
    view = view_run(replace(REPORT, findings=(replace(FINDING, holds=Bound(104_000.0, (3,)), fails=Bound(1e5, (2,))),)))
    assert bracket_picture(view.findings[0]) is not None


def test_an_axis_of_counts_has_only_whole_numbers() -> None:
    view = view_run(REPORT).findings[0]
    rows = tuple(replace(row, at=at) for row, at in zip(view.rows, (1.0, 2.0, 3.0, 4.0), strict=True))
    picture = bracket_picture(replace(view, rows=rows, unit="count", ends=(3.0, 4.0)))
    assert picture is not None
    axis = picture.text.partition('<g class="axis">')[2]
    assert {float(text) for text in re.findall(r'text-anchor="middle">([\d.]+)<', axis)} == {1.0, 2.0, 3.0, 4.0}


def test_a_single_value_has_no_chart() -> None:
    view = view_run(REPORT).findings[0]
    assert bracket_picture(replace(view, rows=view.rows[:1], ends=(None, None))) is None
