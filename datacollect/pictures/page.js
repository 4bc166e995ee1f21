// The page: a chart over time, a graph and a table of one instant, and the cursor that moves it.

const MOST_ROWS = 300;

function legend() {
  const list = element("ul", { class: "legend", "aria-label": "Whose data" });
  DATA.series.forEach(({ name }, i) => {
    const swatch = drawn("svg", { viewBox: "0 0 26 14", "aria-hidden": "true" });
    swatch.append(drawn("rect", { width: 26, height: 14, fill: fillOf(i) }));
    const item = element("li", {});
    item.append(swatch, nameElement(name));
    list.append(item);
  });
  return list;
}

const flowsText = (number) => `${number} ${number === 1 ? "flow" : "flows"}`;

function movingAt(atS) {
  // Flows at an instant, the fastest first.
  const stretch = stretchAt(atS);
  return DATA.flows.map((flow) => ({ ...flow, rate: rateIn(flow.rates, stretch) }))
    .filter(({ rate }) => rate > 0).sort((a, b) => b.rate - a.rate);
}

function collectedAt(atS) {
  const k = stretchAt(atS);
  const [from, to] = [DATA.collected_bytes[k], DATA.collected_bytes[k + 1]];
  const part = (atS - EDGES[k]) / (EDGES[k + 1] - EDGES[k]);
  return from + (to - from) * Math.min(Math.max(part, 0), 1);
}

function rowsOf(cells, tag) {
  return cells.map((row) => {
    const made = element("tr");
    row.forEach(([text, kind]) => made.append(element(tag, kind ? { class: kind } : {}, nameElement(text))));
    return made;
  });
}

function table(caption, heading, rows, id) {
  const made = element("table", { id });
  const head = element("thead", {}, ...rowsOf([heading], "th"));
  head.querySelectorAll("th").forEach((cell) => cell.setAttribute("scope", "col"));
  made.append(element("caption", {}, caption), head, element("tbody", {}, ...rowsOf(rows, "td")));
  return made;
}

function tables(atS, moving) {
  const rows = moving.slice(0, MOST_ROWS).map((flow) => [
    [DATA.hosts[flow.from].name], [DATA.hosts[flow.to].name], [flow.source],
    [rateText(flow.rate), "number"],
  ]);
  const more = moving.length - rows.length;
  const stored = DATA.hosts.map(({ name, stored: curve }) => [name, storedAt(curve, atS)])
    .filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
  const found = [table(
    `${flowsText(moving.length)}${more > 0 ? `, ${more} more are not listed` : ""}`,
    [["from"], ["to"], ["data of"], ["rate", "number"]], rows, "flows")];
  if (stored.length) {
    found.push(table("Others’ data stored", [["at"], ["stored", "number"]],
      stored.slice(0, MOST_ROWS).map(([name, bytes]) => [[name], [bytesText(bytes), "number"]]), "stored"));
  }
  return found;
}

function start() {
  const main = document.querySelector("main");
  const notes = DATA.notes.map((text) => element("p", { class: "note" }, text));
  if (!DATA.bands.length) {
    main.append(...notes);
    return;
  }
  const slider = element("input", {
    type: "range", id: "time", min: 0, max: 1000, step: 1, value: 0, "aria-label": "Time cursor",
  });
  const output = element("output", { id: "instant", for: "time" });
  const now = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Flows at the cursor" });
  const graph = new HostGraph();
  const chart = new TimeChart(moveTo);
  const span = DATA.end_s - DATA.begin_s;
  let atS = DATA.begin_s;

  function moveTo(when) {
    atS = Math.min(Math.max(when, DATA.begin_s), DATA.end_s);
    slider.value = Math.round((1000 * (atS - DATA.begin_s)) / span);
    const moving = movingAt(atS);
    const arriving = moving.filter(({ to }) => DATA.hosts[to].kind === "destination")
      .reduce((sum, flow) => sum + flow.rate, 0);
    output.textContent = `At ${instantText(atS)}: ${bytesText(collectedAt(atS))} of ${DATA.total} `
      + `collected, ${rateText(arriving)} arriving; ${flowsText(moving.length)} between hosts`;
    slider.setAttribute("aria-valuetext", instantText(atS));
    now.replaceChildren(...tables(atS, moving));
    chart.setCursor(atS);
    graph.draw(atS, moving);
  }

  function step(direction) {
    // To the instant before or after at which a rate changes.
    const k = stretchAt(atS);
    moveTo(direction > 0 ? EDGES[k + 1] : EDGES[atS > EDGES[k] ? k : Math.max(k - 1, 0)]);
  }

  slider.addEventListener("input", () => moveTo(DATA.begin_s + (span * slider.value) / 1000));
  const cursor = element("div", { class: "bar cursor" },
    chart.button("|◀", "Change before", () => step(-1)), slider,
    chart.button("▶|", "Next change", () => step(1)), output);
  const howto = element("p", {}, "Wheel, drag or + and − zoom; a click sets the cursor; "
    + "a double click, or 0, shows all.");
  const lines = element("p", { id: "lines" });
  chart.legend = lines;
  const overTime = element("section", { "aria-labelledby": "h-time" },
    element("h2", { id: "h-time" }, "Hosts by time"), chart.buttons, legend(), chart.svg, lines, howto);
  const kind = DATA.is_map ? "Map" : "Graph";
  const drawing = element("section", { "aria-labelledby": "h-graph" },
    element("h2", { id: "h-graph" }, `${kind} of hosts at the cursor`), graph.svg,
    element("p", {}, "An arrow is as wide as its rate. Square: destination; circles: sources; diamonds: "
      + `relays.${DATA.off_map.length ? " On the lower edge: hosts that do not say where they stand." : ""}`));
  const listed = element("section", { "aria-labelledby": "h-now" },
    element("h2", { id: "h-now" }, "Who sends what to whom"), now);
  main.append(hatchings(), cursor, element("div", { class: "two" }, drawing, listed), overTime, ...notes);
  const draw = () => {
    chart.draw();
    moveTo(atS);
  };
  addEventListener("resize", draw);
  draw();
}

start();
document.body.dataset.ready = "yes";
