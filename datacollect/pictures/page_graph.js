// The graph of hosts at one instant: arrows from who sends to who receives, as wide as the rate.

const MOST_NAMES = 60;
const MOST_LABELS = 14;

class HostGraph {
  constructor() {
    this.svg = drawn("svg", { id: "graph", role: "img" });
    this.widest = Math.max(1e-300, ...DATA.flows.map(({ rates }) => {
      let most = 0;
      for (let i = 1; i < rates.length; i += 2) most = Math.max(most, rates[i]);
      return most;
    }));
  }

  draw(atS, moving) {
    this.atS = atS;
    this.moving = moving;
    const width = this.svg.parentElement ? this.svg.parentElement.clientWidth : 0;
    if (!width) return;
    this.svg.replaceChildren();
    this.lay(width);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    this.svg.setAttribute("aria-label", `${DATA.is_map ? "Map" : "Graph"} of hosts at `
      + `${instantText(atS)}: ${moving.length} flows, which the table lists.`);
    this.taken = [];
    this.at.forEach(([x, y]) => this.taken.push([x - 7, y - 7, x + 7, y + 7]));
    const links = new Map();
    for (const flow of moving) {
      const key = `${flow.from} ${flow.to}`;
      if (!links.has(key)) links.set(key, []);
      links.get(key).push(flow);
    }
    const labels = [];
    for (const flows of links.values()) labels.push(this.drawLink(flows, links));
    DATA.hosts.forEach((host, i) => this.drawHost(host, i));
    this.nameHosts();
    if (links.size <= MOST_LABELS) {
      for (const { x, y, text } of labels) this.label(text, [[x, y + 4, "middle"]], "faint halo");
    }
  }

  lay(width) {
    const margin = { x: Math.min(70, width * 0.14), y: 34 };
    const inside = width - 2 * margin.x;
    const most = Math.min(Math.max(width * 0.75, 300), 600);
    // On a map a degree is as long to the east as to the north.
    const high = DATA.aspect ? inside / DATA.aspect : most - 2 * margin.y;
    const tall = Math.min(Math.max(high, 40), most - 2 * margin.y);
    const wide = DATA.aspect ? Math.min(inside, tall * DATA.aspect) : inside;
    const left = margin.x + (inside - wide) / 2;
    this.height = tall + 2 * margin.y;
    this.at = DATA.hosts.map(({ x, y }) => [left + x * wide, margin.y + y * tall]);
    this.apart();
  }

  apart() {
    // Hosts of one town would hide each other: each moves a little away from earlier ones.
    const cells = new Map();
    this.at = this.at.map(([x, y]) => {
      const key = `${Math.round(x / 12)} ${Math.round(y / 12)}`;
      const n = cells.get(key) || 0;
      cells.set(key, n + 1);
      const angle = 2.4 * n;
      const shift = 9 * Math.sqrt(n);
      return [x + shift * Math.cos(angle), y + shift * Math.sin(angle)];
    });
  }

  drawLink(flows, links) {
    // Flows of one link lie side by side; a bow keeps both directions apart.
    const [from, to] = [flows[0].from, flows[0].to];
    const [[x1, y1], [x2, y2]] = [this.at[from], this.at[to]];
    const length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    // So it goes around hosts that lie in between.
    const bow = length * (this.isBlocked(from, to) ? 0.3 : links.has(`${to} ${from}`) ? 0.14 : 0);
    // Where the bow ends, it comes from its middle.
    const [ex, ey] = [dx * 0.5 + dy * (bow / length), dy * 0.5 - dx * (bow / length)];
    const turn = Math.hypot(ex, ey);
    const [hx, hy] = [ex / turn, ey / turn];
    const widths = flows.map(({ rate }) => Math.max(1.2, (11 * rate) / this.widest));
    let side = -widths.reduce((sum, wide) => sum + wide, 0) / 2;
    const group = drawn("g", { class: "arrow", "data-from": from, "data-to": to });
    flows.forEach((flow, i) => {
      const [ox, oy] = [-dy * (side + widths[i] / 2), dx * (side + widths[i] / 2)];
      side += widths[i];
      const middle = [(x1 + x2) / 2 + ox - dy * bow, (y1 + y2) / 2 + oy + dx * bow];
      const end = [x2 + ox - hx * 14, y2 + oy - hy * 14];
      const d = `M${x1 + ox},${y1 + oy}Q${middle.join()} ${end.join()}`;
      // Pale colours need a rim.
      group.append(drawn("path", { d, fill: "none", stroke: "#222", "stroke-width": widths[i] + 1 }));
      group.append(drawn("path", {
        d, fill: "none", stroke: DATA.series[flow.series].colour, "stroke-width": widths[i],
        ...(DATA.series[flow.series].hatch ? { "stroke-dasharray": "6 2" } : {}),
      }));
    });
    const size = 7 + Math.min(6, widths.reduce((sum, wide) => sum + wide, 0) / 3);
    const [tx, ty] = [x2 - hx * 8, y2 - hy * 8];
    group.append(drawn("path", {
      d: `M${tx},${ty}L${tx - hx * size - hy * size * 0.6},${ty - hy * size + hx * size * 0.6}`
        + `L${tx - hx * size + hy * size * 0.6},${ty - hy * size - hx * size * 0.6}z`,
      fill: "#222",
    }));
    const rate = flows.reduce((sum, flow) => sum + flow.rate, 0);
    const words = flows.map((flow) => `data of ${flow.source}: ${rateText(flow.rate)}`);
    this.hover(group, `${DATA.hosts[from].name} → ${DATA.hosts[to].name}\n${words.join("\n")}`);
    this.svg.append(group);
    const bowed = 0.5 * bow;
    return { x: (x1 + x2) / 2 - dy * bowed, y: (y1 + y2) / 2 + dx * bowed, text: rateText(rate) };
  }

  isBlocked(from, to) {
    const [[x1, y1], [x2, y2]] = [this.at[from], this.at[to]];
    const square = (x2 - x1) ** 2 + (y2 - y1) ** 2 || 1;
    return this.at.some(([x, y], i) => {
      const part = ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / square;
      if (i === from || i === to || part <= 0 || part >= 1) return false;
      return Math.hypot(x1 + part * (x2 - x1) - x, y1 + part * (y2 - y1) - y) < 16;
    });
  }

  drawHost(host, i) {
    const [x, y] = this.at[i];
    const series = DATA.series.findIndex(({ name }) => name === host.name);
    const fill = host.kind === "source" && series >= 0 ? fillOf(series) : "#fff";
    const shapes = {
      destination: ["rect", { x: x - 8, y: y - 8, width: 16, height: 16, fill: "#222" }],
      relay: ["path", { d: `M${x},${y - 8}l8,8l-8,8l-8,-8z`, fill }],
      source: ["circle", { cx: x, cy: y, r: 7, fill }],
    };
    const [shape, attributes] = shapes[host.kind];
    const made = drawn(shape, { class: `host ${host.kind}`, ...attributes, stroke: "#222", "stroke-width": 1.5 });
    const stored = storedAt(host.stored, this.atS);
    this.hover(made, `${host.name}: ${host.kind}${stored > 0 ? `\nstores ${bytesText(stored)}` : ""}`);
    this.svg.append(made);
  }

  nameHosts() {
    // Busy hosts first: where there is no room for all names, these have one.
    const busy = new Set(this.moving.flatMap(({ from, to }) => [from, to]));
    const order = DATA.hosts.map((_, i) => i)
      .sort((a, b) => this.rank(a, busy) - this.rank(b, busy)).slice(0, MOST_NAMES);
    for (const i of order) {
      const host = DATA.hosts[i];
      const [x, y] = this.at[i];
      const stored = storedAt(host.stored, this.atS);
      const text = shortened(host.name, 22) + (stored > 0 ? ` (stores ${bytesText(stored)})` : "");
      this.label(text, [
        [x, y - 12, "middle"], [x, y + 21, "middle"], [x + 12, y + 4, "start"], [x - 12, y + 4, "end"],
        [x + 10, y - 12, "start"], [x - 10, y - 12, "end"], [x + 10, y + 19, "start"],
        [x - 10, y + 19, "end"], [x, y + 35, "middle"], [x, y - 26, "middle"],
      ], host.kind === "destination" ? "strong halo" : "halo");
    }
  }

  rank(i, busy) {
    return DATA.hosts[i].kind === "destination" ? 0 : busy.has(i) ? 1 : 2;
  }

  label(text, places, kind) {
    // At the first place where it lies on nothing else; nowhere, where there is none.
    const made = drawn("text", { class: kind }, text);
    this.svg.append(made);
    const wide = made.getComputedTextLength();
    const limit = this.svg.parentElement.clientWidth;
    for (const [x, y, anchor] of places) {
      const left = { middle: x - wide / 2, start: x, end: x - wide }[anchor];
      const box = [left, y - 11, left + wide, y + 3];
      const free = box[0] >= 0 && box[2] <= limit && box[1] >= 0 && box[3] <= this.height
        && !this.taken.some((other) => box[0] < other[2] && other[0] < box[2]
          && box[1] < other[3] && other[1] < box[3]);
      if (free) {
        this.taken.push(box);
        made.setAttribute("x", x);
        made.setAttribute("y", y);
        made.setAttribute("text-anchor", anchor);
        return;
      }
    }
    made.remove();
  }

  hover(target, text) {
    target.addEventListener("pointermove", (event) => showHint(event, text));
    target.addEventListener("pointerleave", (event) => showHint(event, ""));
  }
}
