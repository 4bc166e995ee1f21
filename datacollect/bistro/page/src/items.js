// The cards of what was handed in: whether that is done, what is left to do, and what is proved. The
// newest one stands on top of the page, the others below the form.
import { places } from "./drafts.js";
import { keepOf } from "./keep.js";
import { lineOf } from "./lines.js";
import { receiptFile } from "./receipt.js";
import { proofText } from "./showing.js";

const SIGNS = { done: "✓", not_yet: "…", held: "…", not_done: "✗", replaced: "–", cancelled: "–" };
const BUTTONS = ["save_receipt", "save_proof", "save_keep", "try_again", "forget"];

export class Items {
  // `now`, `before`: where the newest one goes, and the others; `said` tells those who cannot see.
  constructor(now, before, said, handing) {
    this.now = now;
    this.before = before;
    this.said = said;
    this.handing = handing;
    this.cards = new Map();
  }

  // Whether something would be lost, or stops, where the page is closed now.
  isAnyUnsafe() {
    return [...this.handing.items.values()].some((item) => {
      const { holder, isLate } = this.handing.standing(item);
      const { bistros, cancelled } = this.handing.event;
      const isDone = holder || isLate || cancelled || bistros.length === 0;
      return item.state === "sealing" || (item.state === "sealed" && !isDone) || this.#isUnsaved(item);
    });
  }

  #isUnsaved(item) {
    return item.receipt.proofs.length > 0 && !this.handing.saved.get(item.id);
  }

  // Brings an item's card before people's eyes, with a word about it.
  show(id, text = "") {
    for (const [each, { note }] of this.cards) set(note, each === id ? text : "");
    const { root } = this.cards.get(id);
    root.focus({ preventScroll: true });
    root.scrollIntoView({ block: "start" });
  }

  draw(texts) {
    this.texts = texts;
    const { handing } = this;
    for (const [id, card] of this.cards) {
      if (handing.items.has(id)) continue;
      card.root.remove();
      this.cards.delete(id);
    }
    const items = [...handing.items.values()];
    const standings = new Map(items.map((item) => [item.id, handing.standing(item)]));
    this.places = places(items, (item) => standings.get(item.id), handing.event);
    for (const item of items) {
      if (!this.cards.has(item.id)) this.cards.set(item.id, this.#newCard(item.id));
      const { root } = this.cards.get(item.id);
      if (item === items.at(-1)) {
        if (root.parentNode !== this.now) this.now.append(root);
      } else if (root.parentNode !== this.before) {
        this.before.prepend(root);
      }
      this.#drawCard(this.cards.get(item.id), item, standings.get(item.id));
    }
    this.now.parentNode.hidden = items.length === 0;
    this.before.parentNode.hidden = items.length < 2;
    this.#tell(items.at(-1));
  }

  // Says what has become of the newest one, once for each change, and not how many bytes were sent.
  #tell(item) {
    const card = item && this.cards.get(item.id);
    const text = card ? `${item.name}: ${card.state.textContent}. ${card.toDo.textContent}` : "";
    set(this.said, text);
    const { name } = this.handing.event;
    document.title = card ? `${SIGNS[card.is]} ${card.state.textContent} – ${name}` : name;
  }

  #newCard(id) {
    const root = Object.assign(document.createElement("article"), { tabIndex: -1 });
    const add = (tag, place = root, more = {}) =>
      place.appendChild(Object.assign(document.createElement(tag), more));
    const title = add("h3");
    const card = {
      root,
      sign: add("span", title, { ariaHidden: "true", className: "sign" }),
      state: add("span", title, { id: `state-${id}` }),
      note: add("p", root, { className: "note", role: "alert" }),
      name: add("p", root, { id: `name-${id}`, className: "name" }),
      about: add("p", root, { className: "about" }),
      toDo: add("p", root, { className: "to-do" }),
      code: add("p", root, { className: "code" }),
      counts: add("p"),
      line: add("p", root, { className: "line" }),
      bar: add("progress", root, { max: 1 }),
      troubles: add("ul"),
      hint: add("p", root, { className: "hint" }),
      again: add("label"),
    };
    root.setAttribute("aria-labelledby", `${card.state.id} ${card.name.id}`);
    card.againText = add("span", card.again);
    card.file = add("input", card.again, { type: "file" });
    const buttons = add("div", root, { className: "buttons" });
    for (const [name, act] of [
      ["save_receipt", () => this.#saveReceipt(id)],
      ["save_proof", () => this.#saveProof(id)],
      ["save_keep", () => this.#saveKeep(id)],
      ["try_again", () => this.handing.tryAgain(id)],
      ["forget", () => this.#forget(id)],
    ]) {
      card[name] = add("button", buttons, { type: "button" });
      card[name].addEventListener("click", act);
    }
    card.shows = add("p", root, { id: `shows-${id}`, className: "hint shows" });
    card.save_proof.setAttribute("aria-describedby", card.shows.id);
    card.file.addEventListener("change", () => this.#again(id, card));
    return card;
  }

  #drawCard(card, item, standing) {
    const { texts, handing } = this;
    const progress = handing.progress.get(item.id);
    const other = this.places.get(item.id);
    const { key, values, state, toDo } = lineOf(item, standing, progress, other, handing.event, texts);
    const isSealed = Boolean(item.ciphertext_sha256);
    const hasProof = isSealed && proofText(item) !== null;
    const papers = texts.say(hasProof ? "papers_both" : "papers_receipt");
    const say = (name, more) => texts.say(name, { name: item.name, papers, ...more });
    card.is = state;
    card.root.className = state;
    set(card.sign, SIGNS[state]);
    set(card.state, say(`state_${state}`));
    set(card.name, item.name);
    set(card.about, say("about", { bytes: texts.bytes(item.bytes), at: texts.instant(item.created / 1000) }));
    set(card.toDo, say(`do_${toDo}`));
    const isOver = ["replaced", "cancelled"].includes(state);
    set(card.code, standing.code && !isOver ? say("code", { code: standing.code }) : "");
    const nOthers = [...this.places.values()].filter((each) => each?.id === item.id).length;
    set(card.counts, nOthers ? say("counts_this", { n: nOthers + 1 }) : "");
    set(card.line, say(key, values));
    card.bar.hidden = progress?.part === undefined;
    if (progress?.part !== undefined) card.bar.value = progress.part;
    card.bar.setAttribute("aria-label", say("progress"));
    const rows = Object.entries(item.troubles).map(([who, { words }]) =>
      say("trouble", { who, words: words || say("no_answer") }),
    );
    if (rows.join() !== card.rows) {
      card.rows = rows.join();
      card.troubles.replaceChildren(...rows.map((row) => set(document.createElement("li"), row)));
    }
    // Who did not answer is of no more use once somebody has.
    card.troubles.hidden = rows.length === 0 || standing.holder || isOver;
    const hint = isSealed && !isOver && this.#hint(item, standing);
    set(card.hint, hint ? say(hint) : "");
    set(card.againText, say("same_file"));
    card.again.hidden = item.state !== "lost" || isOver;
    for (const name of BUTTONS) set(card[name], say(name));
    card.save_receipt.hidden = !isSealed;
    card.save_receipt.className = hint && hint !== "saved" && standing.proves > 0 ? "first" : "";
    card.save_proof.hidden = !hasProof;
    set(card.shows, hasProof ? say("proof_shows") : "");
    card.save_keep.hidden = !isSealed || Boolean(item.anew) || item.state === "lost";
    card.try_again.hidden = item.state !== "refused" || isOver;
    card.forget.hidden = item.state === "sealing";
  }

  // Whether the receipt is to be saved: again, where it proves more than what was saved.
  #hint({ id }, { proves }) {
    const saved = this.handing.saved.get(id);
    if (saved === undefined) return proves ? "keep_hint" : "nothing_to_save";
    if (saved === 0) return proves ? "saved_nothing" : "saved_too_early";
    return saved < proves ? "save_again" : "saved";
  }

  // What people do with it ---------------------------------------------------------------------

  #saveReceipt(id) {
    const item = this.handing.items.get(id);
    download(receiptFile(item), `${item.name}.receipt.json`);
    return this.handing.markSaved(id);
  }

  // What it shows is known once the file is sealed, and stays so: of this no saving is remembered.
  #saveProof(id) {
    const item = this.handing.items.get(id);
    download(new Blob([proofText(item)]), `${item.name}.proof`);
  }

  async #saveKeep(id) {
    const item = this.handing.items.get(id);
    const ciphertext = await this.handing.store.ciphertext(item);
    if (ciphertext) download(keepOf(ciphertext, item), `${item.name}.keep`);
  }

  #forget(id) {
    const { name } = this.handing.items.get(id);
    if (confirm(this.texts.say("forget_sure", { name }))) this.handing.forget(id);
  }

  async #again(id, card) {
    const file = card.file.files[0];
    if (!file) return;
    const isSame = await this.handing.sealAnew(id, file);
    card.file.value = "";
    set(card.note, isSame ? "" : this.texts.say("other_file"));
  }
}

// What stays the same is not read out again.
function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
  return element;
}

function download(blob, name) {
  const url = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  // Browsers begin to read it a moment later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
