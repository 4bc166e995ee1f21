// The cards of what was handed in: how far each is, in one line of plain words.
import { keepOf } from "./keep.js";
import { receiptFile } from "./receipt.js";

export class Items {
  constructor(place, handing) {
    this.place = place;
    this.handing = handing;
    this.cards = new Map();
  }

  // Whether something would be lost, or stops, where the page is closed now.
  isAnyUnsafe() {
    return [...this.handing.items.values()].some((item) => {
      const { holder, isLate } = this.handing.standing(item);
      const isDone = holder || isLate || this.handing.event.bistros.length === 0;
      return item.state === "sealing" || (item.state === "sealed" && !isDone) || this.#isUnsaved(item);
    });
  }

  #isUnsaved(item) {
    return item.receipt.proofs.length > 0 && !this.handing.saved.has(item.id);
  }

  draw(texts) {
    this.texts = texts;
    for (const [id, card] of this.cards) {
      if (this.handing.items.has(id)) continue;
      card.root.remove();
      this.cards.delete(id);
    }
    for (const item of this.handing.items.values()) {
      if (!this.cards.has(item.id)) {
        const card = this.#newCard(item.id);
        this.cards.set(item.id, card);
        this.place.prepend(card.root);
      }
      this.#drawCard(this.cards.get(item.id), item);
    }
  }

  #newCard(id) {
    const root = document.createElement("article");
    const add = (tag, place = root, more = {}) =>
      place.appendChild(Object.assign(document.createElement(tag), more));
    const card = { root, name: add("h3", root, { id: `name-${id}` }), line: add("p", root, { className: "line" }) };
    root.setAttribute("aria-labelledby", card.name.id);
    card.line.setAttribute("role", "status");
    card.bar = add("progress", root, { max: 1 });
    card.troubles = add("ul");
    card.hint = add("p", root, { className: "hint" });
    card.again = add("label");
    card.againText = add("span", card.again);
    card.file = add("input", card.again, { type: "file" });
    const buttons = add("div", root, { className: "buttons" });
    for (const [name, act] of [
      ["save_receipt", () => this.#saveReceipt(id)],
      ["save_keep", () => this.#saveKeep(id)],
      ["try_again", () => this.handing.tryAgain(id)],
      ["forget", () => this.#forget(id)],
    ]) {
      card[name] = add("button", buttons, { type: "button" });
      card[name].addEventListener("click", act);
    }
    card.file.addEventListener("change", () => this.#again(id, card));
    return card;
  }

  #drawCard(card, item) {
    const { texts, handing } = this;
    const standing = handing.standing(item);
    const progress = handing.progress.get(item.id);
    const [key, values, mood] = this.#line(item, standing, progress);
    const say = (name, more) => texts.say(name, { name: item.name, ...more });
    set(card.name, item.name);
    set(card.line, say(key, values));
    card.root.className = mood;
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
    card.troubles.hidden = rows.length === 0;
    const isSealed = Boolean(item.ciphertext_sha256);
    const hint = isSealed && !handing.saved.has(item.id) ? "keep_hint" : "saved";
    set(card.hint, isSealed ? say(hint) : "");
    set(card.againText, say("same_file"));
    card.again.hidden = item.state !== "lost";
    for (const name of ["save_receipt", "save_keep", "try_again", "forget"]) set(card[name], say(name));
    card.save_receipt.hidden = !isSealed;
    card.save_keep.hidden = !isSealed || Boolean(item.anew) || item.state === "lost";
    card.try_again.hidden = item.state !== "refused";
    card.forget.hidden = item.state === "sealing";
  }

  // The key of the line that says what is proved, its values, and whether that is good or bad.
  #line(item, standing, progress) {
    const { texts, handing } = this;
    const { event } = handing;
    const { time, word, holder, collected, nLogs, isLate } = standing;
    if (progress?.what === "stopped") return ["stopped", { words: progress.words }, "bad"];
    if (progress?.what === "sealing" || item.state === "sealing") return ["sealing", {}, ""];
    if (item.state === "interrupted") return ["interrupted", {}, "bad"];
    if (time === undefined) {
      if (item.state === "refused") return ["refused", {}, "bad"];
      if (word) return ["acknowledged", { word: texts.instant(word.time_s) }, ""];
      return ["asking", {}, ""];
    }
    const values = {
      time: texts.instant(time),
      logs: nLogs === 1 ? texts.say("one_log") : texts.say("logs", { n: nLogs }),
      k: event.quorum,
      n: event.witnesses.length,
      where: holder?.name ?? progress?.where,
    };
    if (isLate) return ["late", values, "bad"];
    if (collected !== undefined) return ["collected", { ...values, at: texts.instant(collected) }, "good"];
    if (item.verdict?.word === "refused" && !item.anew) {
      const isUnopened = item.state === "lost";
      const why = isUnopened ? "" : texts.say(`why_${item.verdict.why.replaceAll(" ", "_")}`);
      return [isUnopened ? "unopened" : "refused_in_the_end", { ...values, why }, "bad"];
    }
    if (item.verdict?.isByStranger) return ["superseded_by_stranger", values, "bad"];
    if (item.verdict?.word === "superseded") return ["superseded", values, ""];
    if (holder) return [event.verdicts?.url ? "held" : "held_last", values, "good"];
    if (item.state === "lost") return ["lost", values, "bad"];
    if (event.bistros.length === 0) return ["proved_only", values, "good"];
    return [progress?.what === "sending" ? "sending" : "ready", values, ""];
  }

  // What people do with it ---------------------------------------------------------------------

  #saveReceipt(id) {
    const item = this.handing.items.get(id);
    download(receiptFile(item), `${item.name}.receipt.json`);
    return this.handing.markSaved(id);
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
    set(card.hint, isSame ? "" : this.texts.say("other_file"));
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
