// What people see and do.
import { base64 } from "./bytes.js";
import { checkReceipt } from "./checking.js";
import { linkedTicketText, readEvent, readTicket } from "./event.js";
import { Handing, sealedBytes } from "./handing.js";
import { Helper } from "./helper.js";
import { Items } from "./items.js";
import { Clock } from "./services.js";
import { Store } from "./store.js";
import { Texts } from "./texts.js";

// So far a device's clock may be off without a word.
const CLOCK_S = 60;

const byId = (id) => document.getElementById(id);

// The one script that the page may start: this file, as a worker.
function newWorker() {
  const create = (url) => url;
  const policy = globalThis.trustedTypes?.createPolicy("datacollect", { createScriptURL: create });
  return new Worker(policy ? policy.createScriptURL("page.js") : "page.js", { type: "module" });
}

export async function show() {
  const event = readEvent(base64.decode(byId("event").textContent.trim()));
  const page = new Page(event);
  try {
    await page.begin();
  } catch (error) {
    write("refusal", page.texts.say("stopped", { words: error.message }));
  }
}

class Page {
  constructor(event) {
    this.clock = new Clock();
    this.store = new Store(event.id);
    this.helper = new Helper(newWorker());
    this.handing = new Handing(event, this.store, this.helper, this.clock, () => this.draw());
    this.ticket = null;
    this.items = new Items(byId("items"), this.handing);
    this.setLanguage(storedLanguage() ?? navigator.language.slice(0, 2));
  }

  get event() {
    return this.handing.event;
  }

  async begin() {
    byId("event-id").textContent = this.event.id;
    byId("ticket-row").hidden = this.event.admission !== "tickets";
    if (this.event.isOlder) {
      byId("submit").disabled = true;
      this.refuse("older_event");
      return;
    }
    this.listen();
    setInterval(() => this.drawTime(), 1000);
    this.clock.follow(this.event.services, () => this.drawTime());
    await this.handing.start();
    await this.takeTicket(linkedTicket(this.event) ?? (await this.store.said("ticket")));
  }

  listen() {
    const file = byId("file");
    const drop = byId("drop");
    byId("hand-in").addEventListener("submit", (event) => {
      event.preventDefault();
      this.handIn();
    });
    byId("ticket").addEventListener("change", async ({ target }) => {
      if (target.files[0]) await this.takeTicket(await target.files[0].text());
    });
    byId("ticket-other").addEventListener("click", () => {
      this.askForTicket(true);
      byId("ticket").focus();
    });
    byId("language").addEventListener("change", ({ target }) => {
      this.setLanguage(target.value);
      this.draw();
    });
    for (const name of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(name, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", name === "dragover");
        if (name === "drop" && event.dataTransfer.files.length) file.files = event.dataTransfer.files;
      });
    }
    byId("check").addEventListener("submit", (event) => {
      event.preventDefault();
      this.check();
    });
    addEventListener("beforeunload", (event) => {
      if (this.items.isAnyUnsafe()) event.preventDefault();
    });
  }

  setLanguage(language) {
    this.texts = new Texts(language);
    document.documentElement.lang = this.texts.language;
    byId("language").value = this.texts.language;
    try {
      localStorage.setItem("datacollect-language", this.texts.language);
    } catch {
      // It is asked again next time.
    }
    for (const element of document.querySelectorAll("[data-text]")) {
      element.textContent = this.texts.say(element.dataset.text);
    }
    const { counts, neverCame } = this.event;
    const isStrict = neverCame === "none" && counts !== "all";
    const keys = [`counts_${counts}`, ...(isStrict ? [`never_came_${counts}`] : [])];
    write("counts", keys.map((key) => this.texts.say(key)).join(" "));
    this.drawTicket();
    this.drawTime();
  }

  // Handing in --------------------------------------------------------------------------------

  async takeTicket(text) {
    if (!text || this.event.admission !== "tickets") return;
    this.ticket = readTicket(text, this.event);
    this.drawTicket();
    if (this.ticket.token) await this.store.say("ticket", text).catch(() => null);
  }

  drawTicket() {
    write("ticket-said", this.ticket ? this.texts.say(this.ticket.why ?? "ticket_good") : "");
    this.askForTicket(!this.ticket?.token);
  }

  // Who came by a link, or was here before, has a ticket: nothing to choose stands in the way.
  askForTicket(isAsked) {
    byId("ticket-field").hidden = !isAsked;
    byId("ticket-other").hidden = isAsked;
  }

  async handIn() {
    const file = byId("file").files[0];
    const needsTicket = this.event.admission === "tickets";
    write("refusal", "");
    if (!file) return this.refuse("file_needed", {}, "file");
    if (needsTicket && !this.ticket?.token) return this.refuse("ticket_needed", {}, "ticket");
    if (file.size > this.event.mostBytes) {
      return this.refuse("too_long", { most: this.texts.bytes(this.event.mostBytes) }, "file");
    }
    byId("submit").disabled = true;
    try {
      await requireRoom(sealedBytes(file.size));
      await this.handing.handIn(file, needsTicket ? this.ticket : null);
      byId("file").value = "";
    } catch (error) {
      await this.refuseFor(error, file);
    } finally {
      byId("submit").disabled = false;
    }
  }

  async refuseFor(error, file) {
    const { texts } = this;
    if (error.name === "QuotaExceededError" || error instanceof NoRoom) {
      const free = error.free ?? (await freeBytes());
      const values = { wanted: texts.bytes(sealedBytes(file.size)), free: texts.bytes(free) };
      this.refuse("no_room", values);
    } else if (["NotFoundError", "NotReadableError"].includes(error.name)) {
      this.refuse("unreadable", {}, "file");
    } else if (error instanceof RangeError) {
      this.refuse("too_long", { most: texts.bytes(this.event.mostBytes) }, "file");
    } else {
      this.refuse("not_sealed", { words: error.message });
    }
  }

  refuse(key, values, where) {
    write("refusal", this.texts.say(key, values));
    if (where) byId(where).focus();
  }

  // Checking ----------------------------------------------------------------------------------

  async check() {
    const [receipt, shown] = ["receipt", "shown"].map((id) => byId(id).files[0]);
    if (!receipt) return;
    const digest = (blob, inner) => this.helper.ask({ digest: { blob, inner } });
    const items = [...this.handing.items.values()];
    let lines;
    try {
      const bytes = new Uint8Array(await receipt.arrayBuffer());
      lines = await checkReceipt(bytes, shown, this.handing, items, digest, this.texts);
    } catch (error) {
      lines = [this.texts.say("check_none", { words: error.message })];
    }
    byId("verdict").replaceChildren(...lines.map(paragraph));
  }

  // Drawing -----------------------------------------------------------------------------------

  draw() {
    this.drawTime();
    byId("items-section").hidden = this.handing.items.size === 0;
    this.items.draw(this.texts);
  }

  drawTime() {
    const { texts, event, clock } = this;
    const now = clock.now();
    const { offset } = clock;
    write("deadline", texts.instant(event.deadline));
    write("deadline-utc", texts.utc(event.deadline));
    const left = texts.duration(event.deadline - now);
    let line = texts.say(offset === undefined ? "left_unknown" : "left", { left });
    if (now < event.opens) line = texts.say("opens", { at: texts.instant(event.opens) });
    if (now >= event.deadline) line = texts.say("over");
    write("left", line);
    const isWrong = Math.abs(offset ?? 0) > CLOCK_S;
    const by = texts.duration(Math.abs(offset ?? 0));
    write("clock", isWrong ? texts.say("clock_wrong", { by }) : "");
  }
}

function write(id, text) {
  const element = byId(id);
  // What stays the same is not read out again.
  if (element.textContent !== text) element.textContent = text;
}

function paragraph(text) {
  const element = document.createElement("p");
  element.textContent = text;
  return element;
}

function storedLanguage() {
  try {
    return localStorage.getItem("datacollect-language");
  } catch {
    return null;
  }
}

// A link to the page may bring the ticket behind `#t=`. It never leaves the browser, and does not stay
// in the address.
function linkedTicket(event) {
  const found = /^#t=([\w-]+)$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname);
  try {
    return linkedTicketText(found[1], event);
  } catch {
    return "-";
  }
}

// Room --------------------------------------------------------------------------------------

class NoRoom extends Error {
  constructor(free) {
    super("no room");
    this.free = free;
  }
}

async function freeBytes() {
  const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
  return Math.max(quota - usage, 0);
}

async function requireRoom(nBytes) {
  // Not thrown away when others need room; browsers may refuse.
  await navigator.storage?.persist?.();
  const free = await freeBytes();
  if (free < nBytes) throw new NoRoom(free);
}
