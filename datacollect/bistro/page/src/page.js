// What people see and do.
import { base64 } from "./bytes.js";
import { checkReceipt } from "./checking.js";
import { Choosing, chosenIn, dropped, element } from "./choosing.js";
import { linkedTicketText, readEvent, readTicket } from "./event.js";
import { bytesOf, Handing, NoRoom, sealedBytes } from "./handing.js";
import { Helper } from "./helper.js";
import { Items } from "./items.js";
import { nameOf } from "./lines.js";
import { Clock } from "./services.js";
import { Store } from "./store.js";
import { Texts } from "./texts.js";

// So far a device's clock may be off without a word.
const CLOCK_S = 60;
// So far the clock of a device alone may be off, before it is believed that the deadline has passed.
const DEVICE_S = 86_400;

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
    this.items = new Items(byId("now"), byId("items"), byId("said"), this.handing);
    this.chosen = new Choosing(byId("file"), byId("chosen"), () => this.drawChosen());
    this.setLanguage([storedLanguage() ?? [], navigator.languages].flat());
  }

  get event() {
    return this.handing.event;
  }

  // Whether several files can be handed in together.
  get isOfSeveral() {
    return this.event.mostFiles > 1;
  }

  async begin() {
    byId("event-id").textContent = this.event.id;
    byId("ticket-row").hidden = this.event.admission !== "tickets";
    byId("file").multiple = this.isOfSeveral;
    byId("folder").hidden = !this.isOfSeveral || !("webkitdirectory" in byId("file"));
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
      this.setLanguage([target.value]);
      keepLanguage(target.value);
      this.draw();
    });
    byId("file").addEventListener("change", ({ target }) => this.choose(chosenIn(target)));
    byId("folder").addEventListener("click", () => {
      const field = element("input", { type: "file", webkitdirectory: true });
      field.addEventListener("change", () => this.choose(chosenIn(field)));
      field.click();
    });
    byId("remove-all").addEventListener("click", () => {
      this.chosen.clear();
      byId("file").focus();
    });
    // Anywhere: beside its place a file would take that of the page.
    for (const name of ["dragover", "dragleave", "drop"]) {
      addEventListener(name, (event) => {
        // Other fields for files take what is dropped on them.
        if (event.target.matches?.("input[type=file]:not(#file)")) return;
        event.preventDefault();
        byId("drop").classList.toggle("over", name === "dragover");
        if (name === "drop" && !byId("form-section").hidden) this.takeDropped(dropped(event.dataTransfer));
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

  setLanguage(languages) {
    this.texts = new Texts(languages);
    document.documentElement.lang = this.texts.language;
    byId("language").value = this.texts.language;
    for (const element of document.querySelectorAll("[data-text]")) {
      element.textContent = this.texts.say(element.dataset.text);
    }
    const { counts, neverCame } = this.event;
    const isStrict = neverCame === "none" && counts !== "all";
    const keys = [`counts_${counts}`, ...(isStrict ? [`never_came_${counts}`] : [])];
    write("counts", keys.map((key) => this.texts.say(key)).join(" "));
    this.drawChosen();
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

  async takeDropped(dropping) {
    let files;
    try {
      files = await dropping;
    } catch (error) {
      return this.refuse("unreadable", { name: error.file ?? "" });
    }
    // What is dropped may be text.
    if (!files.length) return;
    this.choose(files);
    byId("submit").focus();
  }

  // Adds files to those that are there. Who chooses again where one is taken means another one; who drops
  // several there sees them all, and removes what he does not mean.
  choose(files) {
    if (this.isOfSeveral) this.chosen.add(files);
    else if (files.length) this.chosen.put(files);
  }

  drawChosen() {
    const { texts, chosen } = this;
    if (!chosen) return;
    const { files } = chosen;
    chosen.draw(texts);
    byId("remove-all").hidden = files.length < 2;
    write("drop-hint", texts.say(this.isOfSeveral ? "drop" : "drop_one"));
    write("file-label", texts.say(this.isOfSeveral ? "files" : "file"));
    const values = { n: files.length, bytes: texts.bytes(bytesOf(files)) };
    write("taken", files.length > 1 ? texts.say("taken", values) : "");
    const fault = files.length > 0 && this.fault(files);
    write("refusal", fault ? texts.say(...fault) : "");
  }

  // Why files cannot be handed in as they are: the key of a text and its values; undefined: they can.
  fault(files) {
    const { mostFiles, mostBytes } = this.event;
    if (mostFiles === 1 && files.length > 1) return ["one_file", { n: files.length }];
    if (files.length > mostFiles) return ["too_many", { n: files.length, most: mostFiles }];
    const nFaults = this.chosen.faults().filter(Boolean).length;
    if (nFaults) return ["faults", { n: nFaults }];
    if (bytesOf(files) > mostBytes) return ["too_long", { most: this.texts.bytes(mostBytes) }];
  }

  async handIn() {
    const { files } = this.chosen;
    const needsTicket = this.event.admission === "tickets";
    const ticket = needsTicket ? this.ticket : null;
    write("refusal", "");
    if (!files.length) return this.refuse("file_needed", {}, "file");
    const fault = this.fault(files);
    if (fault) return this.refuse(...fault);
    if (needsTicket && !this.ticket?.token) return this.refuse("ticket_needed", {}, "ticket");
    // A single one goes without its folder.
    if (files.length === 1) files[0] = { ...files[0], name: files[0].blob.name };
    byId("submit").disabled = true;
    try {
      const comparing = () => write("taken", this.texts.say("comparing"));
      const same = await this.handing.sameAs(files, ticket, comparing);
      if (same) await this.handInAgain(same, files);
      else await this.handInFirst(files, ticket);
      this.chosen.remove(files);
    } catch (error) {
      await this.refuseFor(error, files);
    } finally {
      byId("submit").disabled = false;
    }
  }

  async handInFirst(files, ticket) {
    await requireRoom(sealedBytes(files));
    await this.handing.handIn(files, ticket, (id) => this.items.show(id));
  }

  // The same bytes make no second draft; where the sealed ones are lost they are sealed anew.
  async handInAgain(item, files) {
    const isLost = item.state === "lost";
    if (isLost) await this.handing.sealAnew(item.id, files);
    const { code } = this.handing.standing(item);
    const name = nameOf(item, this.texts);
    this.items.show(item.id, isLost ? "" : this.texts.say("same_again", { name, code }));
  }

  async refuseFor(error, files) {
    const { texts } = this;
    if (error.name === "QuotaExceededError" || error instanceof NoRoom) {
      const free = error.free ?? (await freeBytes());
      const values = { wanted: texts.bytes(sealedBytes(files)), free: texts.bytes(free) };
      this.refuse("no_room", values);
    } else if (["NotFoundError", "NotReadableError"].includes(error.name)) {
      this.refuse("unreadable", { name: error.file ?? "" });
    } else if (error instanceof RangeError) {
      this.refuse("too_long", { most: texts.bytes(this.event.mostBytes) });
    } else {
      this.refuse("not_sealed", { words: error.message });
    }
  }

  refuse(key, values, where) {
    write("refusal", this.texts.say(key, values));
    byId(where ?? "refusal").focus();
  }

  // Checking ----------------------------------------------------------------------------------

  async check() {
    const [receipt, shown, proof] = ["receipt", "shown", "proof"].map((id) => byId(id).files[0]);
    if (!receipt) return;
    const digest = (blob, by) => this.helper.ask({ digest: { files: [{ name: blob.name, blob }], ...by } });
    const items = [...this.handing.items.values()];
    let lines;
    try {
      const bytes = new Uint8Array(await receipt.arrayBuffer());
      lines = await checkReceipt(bytes, shown, proof, this.handing, items, digest, this.texts);
    } catch (error) {
      lines = [this.texts.say("check_none", { words: error.message })];
    }
    byId("verdict").replaceChildren(...lines.map(paragraph));
  }

  // Drawing -----------------------------------------------------------------------------------

  draw() {
    this.drawTime();
    this.items.draw(this.texts);
    const isFirst = this.handing.items.size === 0;
    write("hand-in-title", this.texts.say(isFirst ? "hand_in_title" : "hand_in_other"));
  }

  // Where nothing more is taken one card says why, in the place of the form.
  drawEnd(isOver) {
    const { texts, event: { cancelled } } = this;
    const values = cancelled && { at: texts.instant(cancelled.at), why: cancelled.why };
    const keys = cancelled ? ["cancelled_on", "cancelled_why"] : isOver ? ["over", "over_form"] : [];
    const [title, text] = keys.map((key) => texts.say(key, values));
    byId("form-section").hidden = Boolean(title);
    byId("ended").hidden = !title;
    byId("ended").className = cancelled ? "not_done" : "";
    write("ended-title", title ?? "");
    write("ended-said", text ?? "");
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
    const isOver = now >= event.deadline;
    if (isOver) line = texts.say("over");
    if (event.cancelled) line = "";
    write("left", line);
    // The clock of a device that no service has answered may be wrong.
    this.drawEnd(offset === undefined ? now >= event.deadline + DEVICE_S : isOver);
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

function keepLanguage(language) {
  try {
    localStorage.setItem("datacollect-language", language);
  } catch {
    // It is asked again next time.
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

async function freeBytes() {
  const { quota = Infinity, usage = 0 } = (await navigator.storage?.estimate?.()) ?? {};
  return Math.max(quota - usage, 0);
}

async function requireRoom(nBytes) {
  // Not thrown away when others need room. Browsers may refuse that; some ask people, which nothing waits for.
  navigator.storage?.persist?.().catch(() => null);
  const free = await freeBytes();
  if (free < nBytes) throw new NoRoom(free);
}
