// Shows how far an event is, as the destination tells it; asks for nothing else, changes nothing.
const byId = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const AGAIN_MS = 2000;
const MOST_CHARACTERS = 300;

function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const i = Math.min(units.length - 1, n < 1000 ? 0 : Math.floor(Math.log10(n) / 3));
  return i ? `${(n / 1000 ** i).toPrecision(3)} ${units[i]}` : `${n} B`;
}

function duration(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const at = units.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [name, size] = units[at];
  const more = units[at + 1];
  const rest = more ? Math.floor((seconds % size) / more[1]) : 0;
  return `${Math.floor(seconds / size)} ${name}${rest ? ` ${rest} ${more[0]}` : ""}`;
}

const both = (seconds) => {
  const at = new Date(seconds * 1000);
  return `${clock.format(at)} (${at.toISOString().slice(0, 19).replace("T", " ")} UTC)`;
};

function fill(id, rows, empty) {
  const cells = (row) => {
    const line = document.createElement("tr");
    row.forEach((value, i) => {
      const cell = document.createElement("td");
      cell.textContent = value;
      if (i) cell.className = "number";
      line.append(cell);
    });
    return line;
  };
  byId(id).replaceChildren(...(rows.length ? rows : [[empty]]).map(cells));
}

function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawArrivals({ arrivals, arrivals_each_s: each, deadline_s: deadline }) {
  const most = Math.max(1, ...arrivals.map(([, n]) => n));
  const times = [...arrivals.map(([at]) => at), deadline];
  const first = Math.min(...times), last = Math.max(...times) + each;
  const x = (at) => (600 * (at - first)) / (last - first);
  const bars = arrivals.map(([at, n]) =>
    shape("rect", { class: "bar", x: x(at), width: Math.max(1, x(at + each) - x(at)), y: 140 - (130 * n) / most, height: (130 * n) / most }),
  );
  const line = shape("line", { class: "deadline", x1: x(deadline), x2: x(deadline), y1: 0, y2: 140 });
  byId("arrivals").replaceChildren(...bars, line);
  byId("arrivals-said").textContent = arrivals.length
    ? `From ${both(first)} to ${both(last)}; at most ${whole.format(most)} in ${duration(each)}.`
    : "None yet.";
}

function show(found) {
  document.title = byId("name").textContent = found.name;
  const left = found.deadline_s - found.time_s;
  byId("times").textContent =
    `Deadline ${both(found.deadline_s)}, ${left > 0 ? `in ${duration(left)}` : `${duration(-left)} ago`}; ` +
    `collected until ${both(found.collect_until_s)}.`;
  const missing = Object.entries(found.missing);
  const done = found.collected + found.superseded + found.refused;
  byId("progress").max = Math.max(1, found.in_time);
  byId("progress").value = Math.min(done - found.not_here, found.in_time);
  byId("plan").textContent = found.predicted_s ? `The rest comes in ${duration(found.predicted_s)}, by plan.` : "";
  fill("counts", [
    ["in time, by what bistros report", whole.format(found.in_time)],
    ["collected", whole.format(found.collected)],
    ...(found.not_here ? [["of these not on this disk as collected", whole.format(found.not_here)]] : []),
    ["superseded by a later draft", whole.format(found.superseded)],
    ["refused", whole.format(found.refused)],
    ["waiting", whole.format(found.waiting)],
    ["late", whole.format(found.late)],
  ]);
  drawArrivals(found);
  const age = (since) => (since === null ? "none" : duration(found.time_s - since));
  fill("bistros", [
    ...found.bistros.map((each) => [each.name, bytes(each.stored_bytes), bytes(each.free_bytes), age(each.oldest_s)]),
    ...found.silent.map((name) => [name, "silent", "", found.contacts[name] === null ? "ever" : age(found.contacts[name])]),
  ], "none has answered");
  fill("missing", missing.map(([kind, n]) => [kind, whole.format(n)]), "nothing");
  const lies = found.lies.length ? found.lies.map(({ who, text }) => `${who}: ${text}`) : ["nothing"];
  byId("lies").replaceChildren(
    ...lies.map((text) => {
      const item = document.createElement("li");
      item.textContent = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
      return item;
    }),
  );
  fill("logs", [...found.logs.map(({ url, size }) => [url, whole.format(size)]), ["verdicts, signed by enough witnesses", whole.format(found.n_verdicts)]]);
  said(`as of ${both(found.time_s)}`, false);
}

function said(text, isAway) {
  byId("state").textContent = text;
  byId("state").classList.toggle("away", isAway);
}

async function listen() {
  const token = location.hash.slice(1);
  const answer = await fetch("events", { headers: { Authorization: `Bearer ${token}` } });
  if (answer.status === 401) {
    said("open the address as `event run` has printed it: what follows # lets you in", true);
    return false;
  }
  if (!answer.ok) throw new Error(`answers ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("has ended");
    held += value;
    const messages = held.split("\n\n");
    held = messages.pop();
    for (const each of messages) if (each.startsWith("data: ")) show(JSON.parse(each.slice(6)));
  }
}

async function stay() {
  try {
    if ((await listen()) === false) return;
  } catch (error) {
    said(`the destination is not reached since ${clock.format(new Date())}; what is shown is older`, true);
  }
  setTimeout(stay, AGAIN_MS);
}

addEventListener("hashchange", () => location.reload());
stay();
