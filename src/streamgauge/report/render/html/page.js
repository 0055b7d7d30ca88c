// Draws the charts of a report. Values come from #charts-data; see charts.py for what they are.
(() => {
  "use strict";
  const page = document.documentElement;
  const box = document.getElementById("charts");
  window.addEventListener("error", (event) => {
    page.dataset.error = event.message;
    const told = document.createElement("p");
    told.textContent = `The charts could not be drawn: ${event.message}`;
    box.append(told);
  });

  const trials = JSON.parse(document.getElementById("charts-data").textContent);
  const MOST_BLOCKS = 6;
  const HEIGHT = 210;

  const short = (value) => String(Number(value.toPrecision(3)));
  const count = (value) => {
    for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(value) >= size) return short(value / size) + letter;
    return short(value);
  };
  const rate = (value) => count(value) + "/s";
  const duration = (value) => (value === 0 ? "0 s" : value >= 1 ? short(value) + " s" : value >= 1e-3 ? short(value * 1e3) + " ms" : short(value * 1e6) + " µs");
  const colour = (name) => getComputedStyle(page).getPropertyValue(name).trim();

  const KINDS = [
    { key: "latency", title: "Latency", format: duration, sparse: true, colours: { "event p50": "--c1", "event p99": "--c2", "event max": "--c3", "processing p50": "--c4", "processing p99": "--c5", "processing max": "--c6" }, hidden: ["processing max"] },
    { key: "throughput", title: "Throughput at the queue, events/s", format: rate, colours: { published: "--c6", served: "--c1", acknowledged: "--c4" }, hidden: ["acknowledged"] },
    { key: "queue", title: "Queue length, events", format: count, sparse: true, colours: { queue: "--c6", lag: "--c3" }, names: { queue: "largest in the second", lag: "lag at acknowledgements" } },
    { key: "cpu", title: "CPU, cores", format: (value) => short(value), colours: { "system under test": "--c1", driver: "--c4", foreign: "--c3", steal: "--c5" }, names: { driver: "load driver", foreign: "other processes", steal: "steal time" } },
  ];

  const shade = (end) => (u) => {
    if (!end) return;
    const left = u.valToPos(u.scales.x.min, "x", true);
    const right = u.valToPos(Math.min(end, u.scales.x.max), "x", true);
    u.ctx.save();
    u.ctx.fillStyle = colour("--shade");
    u.ctx.fillRect(left, u.bbox.top, right - left, u.bbox.height);
    u.ctx.restore();
  };

  const options = (trial, kind, names, width) => {
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "11px system-ui, sans-serif" };
    return {
      width, height: HEIGHT,
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.06 : 1] } },
      axes: [{ ...axis, size: 34, values: (u, splits) => splits.map((at) => at + " s") }, { ...axis, size: 66, values: (u, splits) => splits.map(kind.format) }],
      legend: { markers: { fill: (u, at) => colour(kind.colours[names[at - 1]] || "--c6") } },
      cursor: { sync: { key: "trial-" + trial.trial }, points: { size: 6 } },
      hooks: { drawClear: [shade(trial.warmup)] },
      series: [{ label: "second" }, ...names.map((name) => ({
        label: (kind.names && kind.names[name]) || name,
        stroke: colour(kind.colours[name] || "--c6"),
        width: 1.6,
        spanGaps: true,
        show: !(kind.hidden || []).includes(name),
        points: { show: Boolean(kind.sparse) && trial.time.length <= 150, size: 4 },
        value: (u, value) => (value == null ? "–" : kind.format(value)),
      }))],
    };
  };

  let drawn = [];
  const draw = (trial, kind, grid) => {
    const names = Object.keys(trial[kind.key]);
    if (!names.length) return;
    const cell = document.createElement("div");
    cell.className = "chart";
    const title = document.createElement("h4");
    title.textContent = kind.title;
    cell.append(title);
    grid.append(cell);
    const columns = [trial.time, ...names.map((name) => trial[kind.key][name])];
    const chart = new uPlot(options(trial, kind, names, cell.clientWidth), columns, cell);
    drawn.push({ chart, cell });
  };

  const ROLES = { holds: "passed bound", fails: "failed bound" };
  const describe = (trial) => {
    const role = ROLES[trial.role] || (trial.role ? `${trial.role} of the result` : "");
    const several = new Set(trials.map((other) => other.engine)).size > 1;
    return [`Trial ${trial.trial}`, several ? trial.engine : "", role, rate(trial.load), trial.verdict].filter(Boolean).join(" · ");
  };

  const block = (trial, holder) => {
    const title = document.createElement("h3");
    title.textContent = describe(trial) + (trial.step > 1 ? ` · one point per ${trial.step} s` : "");
    const grid = document.createElement("div");
    grid.className = "grid";
    holder.replaceChildren(title, grid);
    for (const kind of KINDS) draw(trial, kind, grid);
  };

  const holder = () => {
    const made = document.createElement("div");
    made.className = "block";
    box.append(made);
    return made;
  };

  const chooser = (others, chosen, choose) => {
    const label = document.createElement("label");
    const select = document.createElement("select");
    label.append("Another trial: ", select);
    select.append(new Option("choose one", ""));
    for (const trial of others) select.append(new Option(describe(trial), String(trial.trial)));
    select.value = chosen;
    select.addEventListener("change", () => choose(select.value));
    box.append(label);
  };

  let chosen = "";
  const render = () => {
    for (const { chart } of drawn) chart.destroy();
    drawn = [];
    box.replaceChildren();
    const proving = trials.filter((trial) => trial.role).slice(0, MOST_BLOCKS);
    const shown = proving.length ? proving : trials.slice(0, 1);
    for (const trial of shown) block(trial, holder());
    const others = trials.filter((trial) => !shown.includes(trial));
    if (others.length) {
      chooser(others, chosen, (value) => { chosen = value; render(); });
      const picked = others.find((trial) => String(trial.trial) === chosen);
      if (picked) block(picked, holder());
    }
    page.dataset.charts = String(drawn.length);
  };

  render();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  new ResizeObserver(() => {
    for (const { chart, cell } of drawn)
      if (cell.clientWidth && cell.clientWidth !== chart.width) chart.setSize({ width: cell.clientWidth, height: HEIGHT });
  }).observe(box);
})();
