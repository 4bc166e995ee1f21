// Hosts over time: bands of what each sends, receives and stores, to be zoomed.

const BAND = { words: 18, up: 30, down: 30, stored: 18, gap: 10, destination: 84 };
const LEFT = 10;
const RIGHT = 12;
const AXIS = 24;

class TimeChart {
  constructor(onCursor) {
    this.onCursor = onCursor;
    this.view = [DATA.begin_s, DATA.end_s];
    this.atS = DATA.begin_s;
    this.svg = drawn("svg", {
      id: "chart", tabindex: 0, role: "img",
      "aria-label": "Hosts by time: what each sends, receives and stores. Plus and minus zoom, "
        + "left and right move, 0 shows all; the table below says the same of one instant.",
    });
    // What moves with the cursor; never under the pointer, whose double clicks it would end.
    this.over = drawn("g", { "pointer-events": "none" });
    this.buttons = element("div", { class: "bar", role: "group", "aria-label": "Zoom" },
      this.button("+", "Zoom in", () => this.zoom(0.5)),
      this.button("−", "Zoom out", () => this.zoom(2)),
      this.button("◀", "Earlier", () => this.pan(-0.25)),
      this.button("▶", "Later", () => this.pan(0.25)),
      this.button("All", "Show all", () => this.show(DATA.begin_s, DATA.end_s)));
    this.listen();
  }

  button(text, title, act) {
    const made = element("button", { type: "button", title, "aria-label": title }, text);
    made.addEventListener("click", act);
    return made;
  }

  // The view ------------------------------------------------------------------------------------

  show(fromS, toS) {
    const least = Math.max((DATA.end_s - DATA.begin_s) * 1e-6, DATA.end_s * 1e-12);
    const span = Math.min(Math.max(toS - fromS, least), DATA.end_s - DATA.begin_s);
    const from = Math.min(Math.max(fromS, DATA.begin_s), DATA.end_s - span);
    this.view = [from, from + span];
    this.draw();
  }

  zoom(factor, aroundS = (this.view[0] + this.view[1]) / 2) {
    const [fromS, toS] = this.view;
    this.show(aroundS - (aroundS - fromS) * factor, aroundS + (toS - aroundS) * factor);
  }

  pan(part) {
    const shift = part * (this.view[1] - this.view[0]);
    this.show(this.view[0] + shift, this.view[1] + shift);
  }

  x(atS) {
    return LEFT + ((atS - this.view[0]) / (this.view[1] - this.view[0])) * this.width;
  }

  timeAt(x) {
    const part = Math.min(Math.max((x - LEFT) / this.width, 0), 1);
    return this.view[0] + part * (this.view[1] - this.view[0]);
  }

  place(event) {
    const box = this.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  listen() {
    const { svg } = this;
    let start = null;
    svg.addEventListener("wheel", (event) => {
      const whole = this.view[1] - this.view[0] >= DATA.end_s - DATA.begin_s;
      if (event.deltaY > 0 && whole) return; // the page scrolls on
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(this.place(event)[0]));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      start = this.place(event)[0];
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointermove", (event) => {
      const [x, y] = this.place(event);
      if (start !== null && Math.abs(x - start) > 4) {
        this.mark(start, x);
        showHint(event, "");
      } else {
        showHint(event, this.hintAt(x, y));
      }
    });
    svg.addEventListener("pointerup", (event) => {
      const [x] = this.place(event);
      if (start !== null && Math.abs(x - start) > 4) {
        const times = [this.timeAt(start), this.timeAt(x)].sort((a, b) => a - b);
        this.show(...times);
      } else if (start !== null) {
        this.onCursor(this.timeAt(x));
      }
      start = null;
    });
    svg.addEventListener("pointercancel", () => {
      start = null;
      this.setCursor(this.atS);
    });
    svg.addEventListener("pointerleave", (event) => showHint(event, ""));
    svg.addEventListener("dblclick", () => this.show(DATA.begin_s, DATA.end_s));
    svg.addEventListener("keydown", (event) => {
      const acts = {
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
        ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25),
        0: () => this.show(DATA.begin_s, DATA.end_s), Home: () => this.show(DATA.begin_s, DATA.end_s),
      };
      if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      acts[event.key]();
    });
  }

  // Drawing -------------------------------------------------------------------------------------

  draw() {
    const whole = this.svg.parentElement ? this.svg.parentElement.clientWidth : 0;
    if (!whole) return;
    this.width = whole - LEFT - RIGHT;
    this.svg.replaceChildren();
    this.svg.dataset.from = this.view[0];
    this.svg.dataset.to = this.view[1];
    const clip = drawn("clipPath", { id: "inside" });
    clip.append(drawn("rect", { x: LEFT, y: 0, width: this.width, height: 1e5 }));
    this.svg.append(clip);
    let top = this.drawBinds(4);
    this.top = top;
    this.places = [];
    for (const band of DATA.bands) top = this.drawBand(band, top);
    this.bottom = top;
    this.drawMarks();
    const bottom = this.drawAxis(top);
    this.svg.setAttribute("height", bottom);
    this.svg.setAttribute("viewBox", `0 0 ${whole} ${bottom}`);
    this.over.setAttribute("clip-path", "url(#inside)");
    this.svg.append(this.over);
    this.setCursor(this.atS);
  }

  drawBinds(top) {
    const { binds } = DATA.marks;
    if (binds.length) this.text(LEFT, top + 11, "What binds", "faint");
    let y = top + (binds.length ? 16 : 0);
    for (const { text, spans_s: spans } of binds) {
      const row = drawn("g", { class: "binds", "clip-path": "url(#inside)" });
      for (const [from, to] of spans) {
        const x = this.x(from);
        row.append(drawn("rect", {
          x, y: y + 14, width: Math.max(this.x(to) - x, 1), height: 4, fill: "#222",
        }));
      }
      row.append(drawn("title", {}, text));
      this.svg.append(row);
      const seen = spans.find(([, to]) => to > this.view[0]);
      const x = seen ? Math.min(Math.max(this.x(seen[0]), LEFT), LEFT + 0.5 * this.width) : LEFT;
      this.text(x, y + 11, shortened(text, Math.floor((LEFT + this.width - x) / 6)), "faint");
      y += 22;
    }
    return y + (binds.length ? 6 : 0);
  }

  drawBand(band, top) {
    const up = band.sends.length ? BAND.up : 0;
    const collects = band === DATA.bands[DATA.bands.length - 1];
    const down = band.receives.length ? (collects ? BAND.destination : BAND.down) : 0;
    const line = top + BAND.words + up;
    const low = line + down;
    const stored = band.stored.length ? BAND.stored : 0;
    const group = drawn("g", { class: "band", "clip-path": "url(#inside)" });
    group.append(drawn("rect", {
      x: LEFT, y: line - up, width: this.width, height: up + down, fill: "#f5f5f5",
    }));
    const peaks = [band.sends, band.receives].map((areas) => peakOf(areas));
    const places = { band, top, line, low, bottom: low + stored, scales: [] };
    [band.sends, band.receives].forEach((areas, i) => {
      const scale = (i ? down : up) / (peaks[i] || 1);
      places.scales.push(scale);
      this.drawAreas(group, areas, line, i ? scale : -scale);
    });
    group.append(drawn("path", {
      d: `M${LEFT},${line}h${this.width}`, stroke: "#222", "stroke-width": 1, fill: "none",
    }));
    if (stored) this.drawStored(group, band.stored, low + 3, low + stored);
    this.svg.append(group);
    const name = shortened(band.name, 34);
    this.text(LEFT, top + 13, name, "strong");
    const x = LEFT + this.svg.lastChild.getComputedTextLength() + 10;
    const room = Math.floor((LEFT + this.width - x) / 6);
    if (room > 8) this.text(x, top + 13, shortened(band.words, room), "faint");
    this.places.push(places);
    return low + stored + BAND.gap;
  }

  drawAreas(group, areas, line, scale) {
    // Areas stand on each other: steps from the first stretch in view to the last.
    const first = stretchAt(this.view[0]);
    const last = stretchAt(this.view[1]);
    const base = new Float64Array(last - first + 1);
    for (const area of areas) {
      const there = [];
      const back = [];
      let drawnOne = false;
      for (let k = first; k <= last; k += 1) {
        const rate = rateIn(area.rates, k);
        const low = line + scale * base[k - first];
        base[k - first] += rate;
        const high = line + scale * base[k - first];
        const ends = [this.x(EDGES[k]).toFixed(2), this.x(EDGES[k + 1]).toFixed(2)];
        there.push(`${ends[0]},${high.toFixed(2)} ${ends[1]},${high.toFixed(2)}`);
        back.push(`${ends[1]},${low.toFixed(2)} ${ends[0]},${low.toFixed(2)}`);
        drawnOne = drawnOne || rate > 0;
      }
      if (!drawnOne) continue;
      group.append(drawn("polygon", {
        class: "area", points: `${there.join(" ")} ${back.reverse().join(" ")}`,
        fill: fillOf(area.series), stroke: "#fff", "stroke-width": 0.5,
      }));
    }
  }

  drawStored(group, curve, top, bottom) {
    let most = 0;
    for (let i = 1; i < curve.length; i += 2) most = Math.max(most, curve[i]);
    const points = [];
    for (let i = 0; i < curve.length; i += 2) {
      const y = bottom - ((bottom - top) * curve[i + 1]) / (most || 1);
      points.push(`${this.x(curve[i]).toFixed(2)},${y.toFixed(2)}`);
    }
    const ends = [this.x(curve[curve.length - 2]), this.x(curve[0])].map((x) => `${x},${bottom}`);
    group.append(drawn("polygon", {
      class: "stored", points: `${points.join(" ")} ${ends.join(" ")}`, fill: "#d8d8d8",
      stroke: "#222", "stroke-width": 0.8,
    }));
  }

  drawMarks() {
    const marks = drawn("g", { "clip-path": "url(#inside)" });
    const line = (atS, attributes) => marks.append(drawn("path", {
      d: `M${this.x(atS)},${this.top}V${this.bottom}`, fill: "none", stroke: "#222", ...attributes,
    }));
    for (const atS of DATA.marks.periods_s) {
      line(atS, { class: "period", stroke: "#5a5a5a", "stroke-dasharray": "1 3" });
    }
    line(DATA.bound_s, { class: "bound", "stroke-dasharray": "6 4" });
    line(DATA.end_s, { class: "end", "stroke-width": 2 });
    for (const { band, line: y } of this.places) {
      const atS = DATA.marks.releases_s[band.name];
      if (atS === undefined) continue;
      const x = this.x(Math.max(atS, DATA.begin_s));
      marks.append(drawn("path", {
        class: "release", d: `M${x},${y - 6}l9,6l-9,6z`, fill: "#fff", stroke: "#222",
        "stroke-width": 1.3,
      }));
    }
    this.svg.append(marks);
  }

  drawAxis(top) {
    const span = this.view[1] - this.view[0];
    const units = [["days", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 1e-3]];
    const [unit, unitS] = units.find(([, s]) => span >= 5 * s) || units[units.length - 1];
    const most = Math.max(3, Math.floor(this.width / 80));
    const rough = span / unitS / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
    const tick = (atS, y, text) => {
      const x = this.x(atS);
      this.svg.append(drawn("path", { d: `M${x},${y}v5`, stroke: "#222" }));
      const anchor = x < 40 ? "start" : x > this.width - 20 ? "end" : "middle";
      this.text(x, y + 17, text, "faint", anchor);
    };
    this.svg.append(drawn("path", { d: `M${LEFT},${top}h${this.width}`, stroke: "#222" }));
    // Of a moment after a long wait the wait is said once.
    const waitS = this.view[0] > 1000 * span ? this.view[0] : 0;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const first = Math.ceil((this.view[0] - waitS) / unitS / step - 1e-9);
    for (let i = first; waitS + i * step * unitS <= this.view[1]; i += 1) {
      tick(waitS + i * step * unitS, top, `${(i * step).toFixed(Math.min(digits, 20))} ${unit}`);
    }
    const ticks = clockTicks(this.view[0], this.view[1], most);
    for (const { atS, text } of ticks) tick(atS, top + AXIS, text);
    const legend = ["dashed: lower bound", "thick: makespan"];
    if (DATA.marks.periods_s.length) legend.push("dotted: a period of the forecast begins");
    if (Object.keys(DATA.marks.releases_s).length) legend.push("triangle: data are released");
    if (DATA.bands.some((band) => band.stored.length)) legend.push("grey: others’ data stored");
    this.legend.textContent = `Above a host’s line: what it sends, below: what it receives; height: `
      + `rate, each host and direction on its own scale. Lines, ${legend.join("; ")}.`
      + (waitS ? ` Times after ${durationText(waitS)}.` : "")
      + (ticks.length ? ` Clock times: ${DATA.clock.zone}.` : "");
    return top + AXIS + (ticks.length ? AXIS : 0);
  }

  text(x, y, text, kind, anchor = "start") {
    this.svg.append(drawn("text", { x, y, class: kind, "text-anchor": anchor }, text));
  }

  // Cursor and hints ----------------------------------------------------------------------------

  setCursor(atS) {
    this.atS = atS;
    if (!this.places) return;
    this.over.replaceChildren(drawn("path", {
      id: "cursor", d: `M${this.x(atS)},0V${this.bottom}`, stroke: "#c00000", "stroke-width": 2,
    }));
  }

  mark(from, to) {
    this.setCursor(this.atS);
    this.over.append(drawn("rect", {
      id: "marked", x: Math.min(from, to), y: 0, width: Math.abs(to - from), height: this.bottom,
      fill: "#0072b2", opacity: 0.2,
    }));
  }

  hintAt(x, y) {
    const place = this.places.find(({ top, bottom }) => y >= top && y < bottom + BAND.gap);
    const atS = this.timeAt(x);
    const lines = [instantText(atS)];
    if (!place) return lines[0];
    const { band, line } = place;
    const k = stretchAt(atS);
    lines.push(`${band.name}: ${band.words}`);
    const sends = y < line;
    let level = 0;
    for (const area of sends ? band.sends : band.receives) {
      const rate = rateIn(area.rates, k);
      const scale = place.scales[sends ? 0 : 1];
      if (rate > 0 && Math.abs(y - line) >= scale * level && Math.abs(y - line) < scale * (level + rate)) {
        const peer = area.peer === null ? "" : sends ? ` to ${area.peer}` : ` from ${area.peer}`;
        lines.push(`${sends ? "sends" : "receives"} data of ${DATA.series[area.series].name}${peer}: `
          + `${rateText(rate)} from ${spanOf(area.rates, k).map(durationText).join(" to ")}`);
      }
      level += rate;
    }
    if (band.stored.length) lines.push(`stores ${bytesText(storedAt(band.stored, atS))}`);
    return lines.join("\n");
  }
}

function peakOf(areas) {
  // The highest sum of rates.
  const steps = new Map();
  for (const { rates } of areas) {
    let before = 0;
    for (let i = 0; i < rates.length; i += 2) {
      steps.set(rates[i], (steps.get(rates[i]) || 0) + rates[i + 1] - before);
      before = rates[i + 1];
    }
  }
  let most = 0;
  let sum = 0;
  for (const k of [...steps.keys()].sort((a, b) => a - b)) {
    sum += steps.get(k);
    most = Math.max(most, sum);
  }
  return most;
}
