// The cards of what was handed in: whether that is done, what is left to do, and what is proved. The
// newest one stands on top of the page, the others below the form.
import { places } from "./drafts.js";
import { keepOf } from "./keep.js";
import { chosenIn, element, fileRow } from "./choosing.js";
import { fileState, lineOf, nameOf } from "./lines.js";
import { receiptFile } from "./receipt.js";
import { hasProofs, proofTexts } from "./showing.js";
import { zipOf } from "./zip.js";

const SIGNS = { done: "✓", not_yet: "…", held: "…", not_done: "✗", replaced: "–", cancelled: "–" };
const BUTTONS = ["save_receipt", "save_proof", "save_proofs", "save_keep", "try_again", "forget"];
// Of so many files each has a row: browsers take seconds for thousands.
const MOST_ROWS = 200;

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
    const text = card ? `${card.name.textContent}: ${card.state.textContent}. ${card.toDo.textContent}` : "";
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
      // Below what is to be done, which is read first. Many scroll, also for whoever has no mouse.
      files: add("ul", root, { className: "files", tabIndex: 0 }),
      bar: add("progress", root, { max: 1 }),
      troubles: add("ul"),
      hint: add("p", root, { className: "hint" }),
      again: add("label"),
    };
    root.setAttribute("aria-labelledby", `${card.state.id} ${card.name.id}`);
    card.files.setAttribute("aria-labelledby", card.name.id);
    card.againText = add("span", card.again);
    card.file = add("input", card.again, { type: "file" });
    const buttons = add("div", root, { className: "buttons" });
    for (const [name, act] of [
      ["save_receipt", () => this.#saveReceipt(id)],
      ["save_proof", () => this.#saveProof(id)],
      ["save_proofs", () => this.#saveProofs(id)],
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
    const hasProof = isSealed && hasProofs(item);
    const papers = texts.say(hasProof ? (item.files ? "papers_all" : "papers_both") : "papers_receipt");
    const say = (which, more) => texts.say(which, { name: nameOf(item, texts), papers, ...more });
    card.is = state;
    card.root.className = state;
    set(card.sign, SIGNS[state]);
    set(card.state, say(`state_${state}`));
    set(card.name, nameOf(item, texts));
    if (item.files) this.#drawFiles(card, item, key, progress, hasProof);
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
    card.file.multiple = Boolean(item.files);
    card.file.webkitdirectory = Boolean(item.files?.some((file) => file.name.includes("/")));
    card.again.hidden = item.state !== "lost" || isOver;
    for (const name of BUTTONS) set(card[name], say(name));
    card.save_receipt.hidden = !isSealed;
    card.save_receipt.className = hint && hint !== "saved" && standing.proves > 0 ? "first" : "";
    card.save_proof.hidden = !hasProof || Boolean(item.files);
    card.save_proofs.hidden = !hasProof || !item.files;
    set(card.shows, hasProof ? say("proof_shows") : "");
    card.save_keep.hidden = !isSealed || Boolean(item.anew) || item.state === "lost";
    card.try_again.hidden = item.state !== "refused" || isOver;
    card.forget.hidden = item.state === "sealing";
  }

  // Each file of several, how far it is, and what saves its proof.
  #drawFiles(card, { id, files, bytes }, key, progress, hasProof) {
    const { texts } = this;
    const nRead = progress?.what === "sealing" ? progress.part * bytes : 0;
    let end = 0;
    const states = files.slice(0, MOST_ROWS).map((file) => {
      end += file.bytes;
      return key === "sealing" && end <= nRead ? "file_sealed" : fileState(key);
    });
    const drawn = [texts.language, hasProof, ...states].join();
    if (card.drawn === drawn) return;
    card.drawn = drawn;
    const rows = states.map((state, i) => {
      const { name, bytes: nBytes } = files[i];
      const button = hasProof && element("button", { type: "button", textContent: texts.say("save_proof") });
      if (button) {
        button.setAttribute("aria-label", texts.say("save_proof_of", { name }));
        button.addEventListener("click", () => this.#saveProof(id, i));
      }
      return fileRow(name, nBytes, texts, state, button);
    });
    const nMore = files.length - rows.length;
    if (nMore) rows.push(element("li", { textContent: texts.say("more", { n: nMore }) }));
    card.files.replaceChildren(...rows);
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
  #saveProof(id, index = 0) {
    const item = this.handing.items.get(id);
    const { name } = item.files?.[index] ?? item;
    download(new Blob([proofTexts(item)(index)]), `${name.split("/").at(-1)}.proof`);
  }

  async #saveProofs(id) {
    const item = this.handing.items.get(id);
    const textOf = proofTexts(item);
    const proofs = [];
    for (const [i, { name }] of item.files.entries()) {
      // Thousands take seconds, in which the page is not to be deaf.
      if (i % 100 === 99) await new Promise((resolve) => setTimeout(resolve));
      proofs.push({ name: `${name}.proof`, text: textOf(i) });
    }
    download(zipOf(proofs), `${item.name}.proofs.zip`);
  }

  async #saveKeep(id) {
    const item = this.handing.items.get(id);
    const ciphertext = await this.handing.store.ciphertext(item);
    if (ciphertext) download(keepOf(ciphertext, item), `${item.name}.keep`);
  }

  #forget(id) {
    const item = this.handing.items.get(id);
    const papers = this.texts.say(item.files ? "papers_all" : "papers_both");
    const said = this.texts.say("forget_sure", { name: nameOf(item, this.texts), papers });
    if (confirm(said)) this.handing.forget(id);
  }

  async #again(id, card) {
    const found = [...card.file.files];
    if (!found.length) return;
    const files = sameNames(this.handing.items.get(id), found);
    const isSame = files !== null && (await this.handing.sealAnew(id, files));
    card.file.value = "";
    set(card.note, isSame ? "" : this.texts.say("other_file"));
  }
}

// The files of an item among those that were chosen, in its order; null where some are missing. Where
// folders are not known a name alone will do: the bytes decide.
function sameNames({ name, files }, found) {
  if (!files) return [{ name, blob: found[0] }];
  const byName = new Map(chosenIn({ files: found }).flatMap((file) => [[file.blob.name, file], [file.name, file]]));
  const blobOf = (each) => (byName.get(each) ?? byName.get(each.split("/").at(-1)))?.blob;
  const all = files.map(({ name: each }) => ({ name: each, blob: blobOf(each) }));
  return all.every(({ blob }) => blob) ? all : null;
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
