"use strict";
// Draws the report from the JSON in the page. Labels are others' text: they go in as text only.

const data = JSON.parse(document.getElementById("data").textContent);
const SYMBOLS = ["circle", "square-open", "triangle-up", "diamond-open", "triangle-down",
  "cross-open", "x", "star-open"];
const DASHES = ["solid", "dash", "dashdot", "dot", "longdash", "longdashdot", "2px,2px", "8px,3px"];
const PATTERNS = ["", "/", ".", "x", "\\", "+", "-", "|"];
const MARKS = {holds: "✓", differs: "≠", contradicts: "✗", "not run": "–"};
const CONFIG = {displaylogo: false, responsive: true,
  modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d"]};

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Numbers ---------------------------------------------------------------------------------------

const isNumber = text => text !== "" && !Number.isNaN(Number(text));
const short = text => isNumber(text) ? String(Number(Number(text).toPrecision(4))) : text;

// Columns x, x_low and x_high become one: mean [low, high].
function shownColumns(columns) {
  const hidden = new Set(columns.flatMap(name => [name + "_low", name + "_high"]));
  return columns.filter(name => !hidden.has(name) && name !== "run");
}

function cell(table, row, name, ends = [name + "_low", name + "_high"]) {
  const at = column => row[table.columns.indexOf(column)] ?? "";
  const [low, high] = ends.map(at);
  let text = short(at(name));
  // Where all seeds are the same there is nothing between the bounds.
  if (low !== "" && [low, high].some(end => short(end) !== text)) {
    text += ` [${short(low)}, ${short(high)}]`;
  }
  return make("td", {class: isNumber(at(name)) ? "number" : "", "data-column": name,
    "data-value": at(name), title: at(name)}, text);
}

function tableOf(table, columns = shownColumns(table.columns), words = {}) {
  const heading = name => words[name] ?? table.headings[table.columns.indexOf(name)];
  return make("div", {class: "scroll"}, make("table", {},
    make("thead", {}, make("tr", {}, ...columns.map(name =>
      make("th", {scope: "col"}, heading(name))))),
    make("tbody", {}, ...table.rows.map(row =>
      make("tr", {}, ...columns.map(name => cell(table, row, name)))))));
}

function csvLink(table) {
  const quoted = text => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const save = () => {
    const text = [table.columns, ...table.rows].map(row => row.map(quoted).join(",") + "\n").join("");
    const link = make("a", {href: URL.createObjectURL(new Blob([text], {type: "text/csv"})),
      download: table.file});
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return make("button", {type: "button", onclick: save}, table.file);
}

function lazyTable(title, table) {
  const details = make("details", {"data-file": table.file}, make("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (details.open && !details.dataset.filled) {
      details.dataset.filled = "yes";
      details.append(make("p", {}, "CSV: ", csvLink(table)), tableOf(table));
    }
  });
  return details;
}

// Own results -----------------------------------------------------------------------------------

function ownTable(sweep) {
  const table = sweep.tables.own;
  const at = name => table.rows.map(row => row[table.columns.indexOf(name)]);
  const columns = [...sweep.own_axes, "seeds"];
  if (at("incomplete").some(n => n !== "0")) columns.push("incomplete");
  columns.push("makespan_s");
  if (at("base").some(base => base !== "")) columns.push("over_base");
  // Where a run of either did not end, fewer seeds made the ratio than the mean.
  const seeds = at("seeds");
  if (at("pairs").some((n, i) => n !== "0" && n !== seeds[i])) columns.push("pairs");
  if (sweep.base === "" && columns.includes("over_base")) columns.push("base");
  const against = sweep.base === "" ? "makespan over the base's (ratio)" :
    `makespan over that of ${sweep.base} (ratio)`;
  return tableOf(table, columns, {over_base: against});
}

function ownSection(sweep, isOpen) {
  const body = [];
  if (sweep.chance) body.push(make("p", {class: "chance"}, sweep.chance));
  body.push(make("p", {}, "In brackets are 95 % intervals of the mean over seeds; a ratio below " +
    "1 is faster. CSV: ", csvLink(sweep.tables.own)), ownTable(sweep));
  if (data.sweeps.length === 1) return make("section", {id: "own"}, ...body);
  const details = make("details", {class: "own", "data-own": sweep.name},
    make("summary", {}, sweep.name));
  const fill = () => { if (details.open && details.children.length === 1) details.append(...body); };
  details.addEventListener("toggle", fill);
  details.open = isOpen;
  fill();
  return details;
}

// Claims ----------------------------------------------------------------------------------------

function claimCell(table, row, name, head, verdict) {
  if (name === "claim") return make("td", {}, head);
  if (name === "value") return cell(table, row, name, ["low", "high"]);
  if (name === "verdict") return make("td", {class: "verdict"}, verdict);
  return make("td", {}, row[table.columns.indexOf(name)]);
}

function claimRows(table, row) {
  const at = name => row[table.columns.indexOf(name)];
  const settled = at("is_settled") === "yes" || at("verdict") === "not run";
  const verdict = `${MARKS[at("verdict")]} ${at("verdict")}${settled ? "" : " (not settled)"}`;
  const head = make("button", {type: "button", "aria-expanded": "false"}, at("claim"));
  const why = make("tr", {class: "why", hidden: ""}, make("td", {colspan: table.shown.length},
    make("strong", {}, at("why")), make("br"),
    [at("where"), at("setting"), at("seeds") === "0" ? "" : `${at("seeds")} seeds`]
      .filter(Boolean).join("; ")));
  const toggle = () => {
    why.hidden = !why.hidden;
    head.setAttribute("aria-expanded", String(!why.hidden));
  };
  const line = make("tr", {class: "claim", onclick: toggle},
    ...table.shown.map(([name]) => claimCell(table, row, name, head, verdict)));
  return [line, why];
}

function claimsSection(table) {
  const heads = table.shown.map(([, heading]) => make("th", {scope: "col"}, heading));
  return make("div", {class: "wide"}, make("table", {id: "claims"},
    make("thead", {}, make("tr", {}, ...heads)),
    make("tbody", {}, ...table.rows.flatMap(row => claimRows(table, row)))));
}

// Charts ----------------------------------------------------------------------------------------

function errorBars(points, index) {
  const at = points.map(point => ({mean: point.mean, low: point.low, high: point.high}));
  return {type: "data", symmetric: false, thickness: 1, visible: true, color: index,
    array: at.map(p => p.high === null ? 0 : p.high - p.mean),
    arrayminus: at.map(p => p.low === null ? 0 : p.mean - Math.max(p.low, 0))};
}

function traceOf(panel, series, i) {
  const points = panel.points.filter(point => point.series === series);
  const style = i % data.colours.length;
  const colour = data.colours[style];
  const trace = {name: series, customdata: points.map(point => point.run),
    text: points.map(point => `${point.n} seeds, ${short(String(point.connections))} connections`)};
  const [labels, means] = [points.map(point => point.x), points.map(point => point.mean)];
  if (panel.kind === "dots") {
    return {...trace, type: "scatter", mode: "markers", x: means, y: labels,
      error_x: errorBars(points, colour), marker: {color: colour, symbol: SYMBOLS[style], size: 8},
      hovertemplate: "%{y}: %{x:.4g}<br>%{text}"};
  }
  const bars = {...trace, x: labels, y: means, hovertemplate: "%{x}: %{y:.4g}<br>%{text}"};
  if (panel.kind === "bars") {
    return {...bars, type: "bar", textposition: "none", error_y: errorBars(points, "#000"),
      marker: {color: colour, pattern: {shape: PATTERNS[style], fillmode: "overlay"}}};
  }
  return {...bars, type: "scatter", mode: "lines+markers", x: labels.map(Number),
    line: {color: colour, dash: DASHES[style]}, error_y: errorBars(points, colour),
    marker: {color: colour, symbol: SYMBOLS[style], size: 8}};
}

function drawPanel(holder, panel) {
  const names = [...new Set(panel.points.map(point => point.series))];
  const dots = panel.kind === "dots";
  const div = make("div", {class: dots ? "chart tall" : "chart", "data-panel": panel.title});
  holder.append(div);
  const rows = new Set(panel.points.map(point => point.x)).size;
  if (dots) div.style.height = `${8 + 1.6 * rows}rem`;
  const value = {title: {text: panel.value}, rangemode: "tozero"};
  // Plotly would take labels such as 1:1 for times.
  const label = {title: {text: dots ? "" : panel.x}, type: panel.kind === "lines" ? "linear" : "category",
    automargin: true};
  // Series that are the labels below stand there alone, and need no legend.
  const alone = panel.x === panel.series;
  const title = panel.title.endsWith(panel.shown) ? panel.title : `${panel.title}: ${panel.shown}`;
  const layout = {title: {text: title, font: {size: 14}}, barmode: alone ? "overlay" : "group",
    showlegend: !alone,
    margin: {t: 40, r: 10, b: 50, l: 70}, hovermode: "closest", legend: {orientation: "h", y: -0.25,
      title: {text: panel.series}},
    xaxis: dots ? value : label, yaxis: dots ? {...label, autorange: "reversed"} : value};
  Plotly.newPlot(div, names.map((name, i) => traceOf(panel, name, i)), layout, CONFIG);
  div.on("plotly_click", event => showRun(event.points[0].customdata, panel.title));
}

// Sweeps ----------------------------------------------------------------------------------------

function facts(pairs) {
  return make("dl", {}, ...pairs.flatMap(([name, value]) =>
    [make("dt", {}, name), make("dd", {}, value)]));
}

function runLinks(sweep) {
  const links = sweep.runs.map(key => make("li", {},
    make("button", {type: "button", "data-run": key, onclick: () => showRun(key, sweep.name)},
      data.runs[key].title)));
  return make("details", {}, make("summary", {}, "Single runs: schedule and storage"),
    make("p", {class: "faint"}, sweep.runs_note), make("ul", {}, ...links));
}

function sweepSection(sweep, isOpen) {
  const charts = make("div", {class: "charts"});
  const details = make("details", {class: "sweep", "data-sweep": sweep.name},
    make("summary", {}, `Charts of ${sweep.name}`), charts);
  details.addEventListener("toggle", () => {
    if (details.open && !charts.hasChildNodes()) {
      sweep.panels.forEach(panel => drawPanel(charts, panel));
    }
  });
  details.open = isOpen;
  return make("section", {}, make("h2", {}, sweep.name), make("p", {}, sweep.title),
    facts(sweep.facts),
    ...(sweep.tables.figure ? [details,
      make("p", {}, "Numbers of the charts as CSV: ", csvLink(sweep.tables.figure))] : []),
    lazyTable("Means, ratios, storage, background", sweep.tables.summary),
    ...(sweep.tables.across ? [lazyTable("Methods over all settings together", sweep.tables.across)] : []),
    lazyTable("Predicted and measured makespan, busiest wire", sweep.tables.prediction),
    runLinks(sweep));
}

// A single run ----------------------------------------------------------------------------------

function scheduleTraces(run) {
  const sources = [...new Set(run.bars.map(bar => bar.source))];
  return sources.map((source, i) => {
    const bars = run.bars.filter(bar => bar.source === source);
    return {type: "bar", orientation: "h", name: source,
      y: bars.map(bar => bar.link), base: bars.map(bar => bar.start_s),
      x: bars.map(bar => bar.finish_s - bar.start_s), width: 0.7,
      customdata: bars.map(bar => [bar.route, bar.bytes, bar.start_s, bar.finish_s]),
      hovertemplate: "%{customdata[0]}<br>%{customdata[1]:.4s}B from %{customdata[2]:.4g} to " +
        "%{customdata[3]:.4g} s",
      marker: {color: data.colours[i % data.colours.length], opacity: 0.75,
        pattern: {shape: PATTERNS[i % PATTERNS.length], fillmode: "overlay"}, line: {width: 0.5}}};
  });
}

function storageTraces(run) {
  return Object.entries(run.storage).map(([host, curve], i) => ({type: "scatter", mode: "lines",
    name: host, x: curve.time_s, y: curve.others_bytes,
    line: {color: data.colours[i % data.colours.length], dash: DASHES[i % DASHES.length]}}));
}

function showRun(key, from) {
  const dialog = document.getElementById("run");
  const run = data.runs[key];
  const close = make("button", {type: "button", onclick: () => dialog.close()}, "close");
  dialog.replaceChildren(close);
  if (run === undefined) {
    dialog.append(make("p", {}, `${from}: of this run only its row of the results is here (key ` +
      `${key}). Schedules are kept of runs in ns-3, and shown of a bounded number of them.`));
    if (!dialog.open) dialog.showModal();
    return;
  }
  const plan = make("div", {class: "chart", id: "schedule"});
  const stored = make("div", {class: "chart", id: "storage"});
  dialog.append(make("h3", {}, run.title), facts(run.facts), plan, stored);
  if (!dialog.open) dialog.showModal();
  const links = new Set(run.bars.map(bar => bar.link)).size;
  plan.style.height = `${10 + 1.3 * links}rem`;
  const time = {title: {text: "time, s"}, rangemode: "tozero"};
  const names = {type: "category", automargin: true, autorange: "reversed"};
  const margin = {t: 40, r: 10, b: 50, l: 70};
  Plotly.newPlot(plan, scheduleTraces(run), {title: {text: `Schedule as planned${run.left_out}`},
    barmode: "overlay", margin, xaxis: time, yaxis: names}, CONFIG);
  const traces = storageTraces(run);
  if (traces.length === 0) {
    stored.replaceWith(make("p", {}, "No host stored others' data."));
    return;
  }
  Plotly.newPlot(stored, traces, {title: {text: "Others' data stored, as measured"}, margin,
    xaxis: time, yaxis: {title: {text: "bytes"}, rangemode: "tozero"}}, CONFIG);
}

// The page --------------------------------------------------------------------------------------

const main = document.querySelector("main");
main.append(make("h2", {}, "What was found"),
  ...data.sweeps.map((sweep, i) => ownSection(sweep, i === 0)));
if (data.claims.rows.length > 0) {
  main.append(make("h2", {}, data.claims.title),
    make("p", {}, "A click on a row says why. CSV: ", csvLink(data.claims)),
    claimsSection(data.claims));
}
main.append(...data.sweeps.map((sweep, i) => sweepSection(sweep, i === 0)));
document.body.dataset.ready = "yes";
