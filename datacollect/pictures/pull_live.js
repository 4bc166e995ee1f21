// Shows a pull while it goes on: what its feed tells, in its words.
"use strict";
(() => {
  const {byId, element, table} = live;
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 288, LEFT = 64, RIGHT = 10, TOP = 10, BOTTOM = 24;
  let chart = null;

  function shape(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function draw() {
    if (!chart) return;
    const width = Math.max(byId("chart").clientWidth, 200);
    const x = s => LEFT + (width - LEFT - RIGHT) * s / chart.end_s;
    const y = n => TOP + (HEIGHT - TOP - BOTTOM) * (1 - n / chart.most);
    const path = points => points.map(([s, n], i) => `${i ? "L" : "M"}${x(s).toFixed(1)} ${y(n).toFixed(1)}`).join("");
    const parts = [];
    for (const [n, text] of chart.ticks) {
      parts.push(shape("line", {x1: LEFT, x2: width - RIGHT, y1: y(n), y2: y(n), class: "grid"}));
      parts.push(shape("text", {x: LEFT - 6, y: y(n) + 4, "text-anchor": "end"}, text));
    }
    // As many as have room beside each other; the last may not stand out of the picture.
    const every = Math.ceil(chart.ticks_s.length * 75 / (width - LEFT - RIGHT));
    chart.ticks_s.forEach(([s, text], i) => {
      if (i % every) return;
      const anchor = x(s) > width - 40 ? "end" : i ? "middle" : "start";
      parts.push(shape("text", {x: x(s), y: HEIGHT - 6, "text-anchor": anchor}, text));
    });
    if (chart.between_s) {
      const [low, high] = chart.between_s.map(x);
      parts.push(shape("rect", {x: low, y: TOP, width: Math.max(high - low, 1), height: y(0) - TOP, class: "between"}));
    }
    if (chart.predicted_s !== null) {
      const at = x(chart.predicted_s);
      parts.push(shape("line", {x1: at, x2: at, y1: TOP, y2: y(0), class: "line end"}));
    }
    parts.push(shape("path", {d: path(chart.planned), class: "line planned"}));
    parts.push(shape("path", {d: path(chart.done), class: "line done"}));
    const svg = shape("svg", {viewBox: `0 0 ${width} ${HEIGHT}`});
    svg.append(...parts);
    byId("chart").replaceChildren(svg);
  }

  function list(into, rows, none) {
    into.replaceChildren(...(rows.length ? rows : [none]));
  }

  function show(news) {
    if ("headline" in news) byId("headline").textContent = news.headline;
    if ("part" in news) byId("part").value = news.part;
    if (news.facts) {
      byId("facts").replaceChildren(...news.facts.map(([term, text]) => {
        const both = element("div");
        both.append(element("dt", term), element("dd", text));
        return both;
      }));
    }
    if (news.stuck) {
      list(byId("stuck"), news.stuck.map(([name, why]) => {
        const item = element("li");
        item.append(element("strong", name), `: ${why}`);
        return item;
      }), element("li", "Nobody is stuck."));
    }
    if (news.events) {
      list(byId("events"), news.events.map(([at, text]) => element("li", `after ${at}: ${text}`)),
        element("li", "Nothing so far."));
    }
    for (const name of ["course", "routes"]) {
      const found = news[name];
      if (found) table(byId(name), found.caption, found.columns, found.rows);
    }
    if (news.chart) {
      chart = news.chart;
      const planned = !!chart.planned.length;
      byId("key").querySelector(".planned").hidden = !planned;
      byId("key").querySelector(".end").hidden = chart.predicted_s === null;
      byId("key").querySelector(".between").hidden = !chart.between_s;
      draw();
    }
    return news.ended;
  }

  addEventListener("resize", draw);
  live.follow(show, "Connected: this page follows the pull.");
})();
