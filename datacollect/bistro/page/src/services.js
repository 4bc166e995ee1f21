// What services are asked, and the time by their clocks: that of this device proves nothing.
import { commitStatement, signText } from "./statements.js";
import { sleep } from "./waiting.js";

const ANSWER_S = 20;

export class Refused extends Error {
  constructor(status, words, retryAfter) {
    super(words || `${status}`);
    this.status = status;
    this.retryAfter = retryAfter;
    // Nothing will change by asking again.
    this.isFinal = [400, 403, 410, 413].includes(status) && !retryAfter;
  }
}

// What to say of an error; nothing where there was no answer at all.
export const wordsOf = (error) =>
  error instanceof TypeError || error instanceof DOMException ? "" : error.message;

async function ask(url, signal, body) {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_S * 1000)]);
  // Text, which needs no question beforehand whether it may be sent.
  const request = { method: body ? "POST" : "GET", body, signal: ends, credentials: "omit", cache: "no-store" };
  return fetch(url, request);
}

async function answer(url, signal, body) {
  const response = await ask(url, signal, body);
  const text = await response.text();
  if (response.status === 200) return text;
  const seconds = Number(response.headers.get("Retry-After")) || 0;
  throw new Refused(response.status, text.trim().slice(0, 500), seconds);
}

// Commits to an item's entry, signed by its ticket for this service's log alone.
export async function commit(service, entry, item, signal) {
  const said = commitStatement(item.event, service.log.key, [entry]);
  const shown = item.ticket && { ticket: item.ticket, signature: signText(item.ticket_seed, said) };
  const body = JSON.stringify({ entry, ...shown });
  const { index, time_s, signature } = JSON.parse(await answer(`${service.url}/commit`, signal, body));
  return { log: service.log.name, index, time_s, signature };
}

export const proofOf = (url, entry, signal) => answer(`${url}/proof/${entry}`, signal);

export const verdictOn = (url, entry, signal) => answer(`${url}/verdict/${entry}`, signal);

export async function amendmentsOf(service, event, signal) {
  const tree = JSON.parse(await answer(`${service.url}/amendments`, signal));
  if (tree?.event !== event.id || !Array.isArray(tree.amendments)) return [];
  // What a service makes up keeps nobody from hearing the others.
  const isOne = ({ note, proofs } = {}) => typeof note === "string" && Array.isArray(proofs);
  return tree.amendments.filter((row) => isOne(row ?? {}));
}

// The clock of services: what their answers say, against that of this device.
export class Clock {
  #offsets = new Map();

  // Seconds since 1970; by this device's clock where no service has answered.
  now = () => Date.now() / 1000 + (this.offset ?? 0);

  // How far services' clocks are ahead of this device's, in seconds: the middle one of them.
  get offset() {
    const offsets = [...this.#offsets.values()].sort((a, b) => a - b);
    return offsets[Math.floor((offsets.length - 1) / 2)];
  }

  async look(service, signal) {
    const before = performance.now();
    const response = await ask(`${service.url}/checkpoint`, signal);
    const said = Date.parse(response.headers.get("Date") ?? "") / 1000;
    // The header has whole seconds.
    const middle = said + 0.5 + (performance.now() - before) / 2000;
    if (!Number.isNaN(said)) this.#offsets.set(service.url, middle - Date.now() / 1000);
  }

  // Looks at once, and again every few minutes: devices sleep, and their clocks are set.
  async follow(services, changed) {
    for (;;) {
      const never = new AbortController().signal;
      const looks = services.map((service) => this.look(service, never).catch(() => null));
      await Promise.all(looks);
      changed();
      await sleep(this.offset === undefined ? 10 : 300);
    }
  }
}
