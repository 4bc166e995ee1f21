"use strict";
// Words, numbers and elements that all parts of the page share.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function withPrefix(value, unit) {
  for (const [power, prefix] of [[5, "P"], [4, "T"], [3, "G"], [2, "M"], [1, "k"]]) {
    if (Math.abs(value) >= 0.9995 * 1000 ** power) {
      return `${Number((value / 1000 ** power).toPrecision(4))} ${prefix}${unit}`;
    }
  }
  return `${Number(value.toPrecision(4))} ${unit}`;
}

const bytesText = (bytes) => withPrefix(bytes, "B");
// In bits, as network users do.
const rateText = (bytesPerS) => withPrefix(8 * bytesPerS, "bit/s");

function durationText(seconds) {
  if (seconds < 60) return `${Number(seconds.toPrecision(4))} s`;
  const whole = Math.round(seconds);
  const two = (number) => String(number).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  if (whole < 3600) return `${minutes} min ${two(whole % 60)} s`;
  if (whole < 48 * 3600) return `${hours} h ${two(minutes)} min ${two(whole % 60)} s`;
  const days = Math.floor(hours / 24);
  return `${days} days ${two(hours % 24)} h ${two(minutes)} min`;
}

// Clocks ----------------------------------------------------------------------------------------

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function aheadAt(atS) {
  // Seconds that clocks are ahead of UTC.
  let ahead = DATA.clock.offsets[0][1];
  for (const [fromS, aheadS] of DATA.clock.offsets) if (atS >= fromS) ahead = aheadS;
  return ahead;
}

function shownAt(atS) {
  // What clocks show, to be read with getUTC... only: browsers know other zones than the plan's.
  return new Date(Math.round((DATA.clock.epoch_s + atS + aheadAt(atS)) * 1000));
}

const dayText = (shown) =>
  `${DAYS[shown.getUTCDay()]} ${shown.getUTCDate()} ${MONTHS[shown.getUTCMonth()]}`;
const timeText = (shown, seconds) => shown.toISOString().slice(11, seconds ? 19 : 16);

function instantText(atS) {
  const text = durationText(atS);
  if (!DATA.clock) return text;
  const shown = shownAt(atS);
  return `${text} (${dayText(shown)} ${timeText(shown, true)}, ${DATA.clock.zone})`;
}

const CLOCK_STEPS_S = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
  172800, 604800, 1209600, 2419200, 7862400, 31449600];

function clockTicks(fromS, toS, most) {
  // Round clock times between two instants, at most so many: {atS, text}.
  if (!DATA.clock) return [];
  let stepS = CLOCK_STEPS_S.find((step) => (toS - fromS) / step < most);
  if (!stepS) stepS = 31449600 * Math.ceil((toS - fromS) / 31449600 / most);
  const ticks = [];
  DATA.clock.offsets.forEach(([beginS, aheadS], i) => {
    const next = DATA.clock.offsets[i + 1];
    const endS = Math.min(toS, next ? next[0] - 1e-6 : Infinity);
    const shift = DATA.clock.epoch_s + aheadS;
    const first = Math.ceil((Math.max(fromS, beginS) + shift) / stepS) * stepS - shift;
    // A plan may end a rounding error before its deadline, which is a round time.
    const lastS = endS + (endS === toS ? 1e-9 * stepS : 0);
    for (let atS = first; atS <= lastS; atS += stepS) {
      const shown = shownAt(atS);
      const midnight = shown.getTime() % 86400000 === 0;
      ticks.push({ atS, text: midnight ? dayText(shown) : timeText(shown, stepS < 60) });
    }
  });
  return ticks;
}

// Series of changes -----------------------------------------------------------------------------

const EDGES = DATA.edges_s;

function stretchAt(atS) {
  // The number of the stretch of time that holds an instant; the last also holds its end.
  let low = 0;
  let high = EDGES.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (EDGES[middle] <= atS) low = middle;
    else high = middle - 1;
  }
  return low;
}

function changeBefore(rates, stretch) {
  // `rates`: a stretch's number and the rate from there on, in turn. How many of these are past.
  let low = 0;
  let high = rates.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rates[2 * middle] <= stretch) low = middle + 1;
    else high = middle;
  }
  return low;
}

function rateIn(rates, stretch) {
  const i = changeBefore(rates, stretch);
  return i ? rates[2 * i - 1] : 0;
}

function spanOf(rates, stretch) {
  // From when to when the rate stays as it is.
  const i = changeBefore(rates, stretch);
  const ends = [i ? rates[2 * i - 2] : 0, i < rates.length / 2 ? rates[2 * i] : EDGES.length - 1];
  return ends.map((k) => EDGES[k]);
}

function storedAt(curve, atS) {
  // `curve`: instants and bytes, in turn; straight in between, nothing before and after.
  for (let i = 2; i < curve.length; i += 2) {
    const [fromS, from, toS, to] = curve.slice(i - 2, i + 2);
    if (atS >= fromS && atS <= toS) {
      return toS > fromS ? from + ((to - from) * (atS - fromS)) / (toS - fromS) : to;
    }
  }
  return 0;
}

// Elements --------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function nameElement(text) {
  // Names in any script stay apart from the words around them.
  return element("bdi", {}, text);
}

const fillOf = (series) => {
  const look = DATA.series[series];
  return look.hatch ? `url(#hatch${series})` : look.colour;
};

function hatchings() {
  // Definitions of hatched fills, to be shared by all drawings of the page.
  const svg = drawn("svg", { width: 0, height: 0, "aria-hidden": "true", style: "position:absolute" });
  DATA.series.forEach((look, i) => {
    if (!look.hatch) return;
    const pattern = drawn("pattern", {
      id: `hatch${i}`, width: 7, height: 7, patternUnits: "userSpaceOnUse",
    });
    pattern.append(drawn("rect", { width: 7, height: 7, fill: look.colour }));
    pattern.append(look.hatch === 1
      ? drawn("path", { d: "M-1,8L8,-1M-1,1L1,-1M6,8L8,6", stroke: look.ink, "stroke-width": 1.2 })
      : drawn("circle", { cx: 3.5, cy: 3.5, r: 1.3, fill: look.ink }));
    svg.append(pattern);
  });
  return svg;
}

function shortened(text, most) {
  const letters = [...text];
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

const HINT = document.getElementById("hint");

function showHint(event, text) {
  HINT.textContent = text;
  HINT.hidden = !text;
  if (!text) return;
  const { width, height } = HINT.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 4);
  const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
  HINT.style.left = `${Math.max(left, 4)}px`;
  HINT.style.top = `${Math.max(top, 4)}px`;
}
