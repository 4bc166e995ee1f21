// What becomes of files that are handed in: sealed, kept, committed, pushed. One tab at a time works
// on one; when it goes, by a lock of the browser, another goes on from what is on the disk.
import { hex, randomHex } from "./bytes.js";
import { entryOf, headerText } from "./commitment.js";
import { isOut } from "./drafts.js";
import { amended, latest } from "./event.js";
import { filesHeaderText, frameBytes } from "./files.js";
import { amendmentsOf, verdictOn } from "./services.js";
import { isOfSameTicket, markOf } from "./marks.js";
import { prove } from "./proving.js";
import { push } from "./pushing.js";
import {
  collectedText,
  collectedTime,
  emptyReceipt,
  holderOf,
  readVerdict,
  receiptTime,
} from "./receipt.js";
import { handInStatement, publicOf, sign } from "./statements.js";
import { sleep } from "./waiting.js";

// After no bistro took it; between questions whether it was collected.
const PUSH_AGAIN_S = 10;
const VERDICT_AGAIN_S = 30;
// The same of what is collected: another file may still take its place, until some time after the end.
const COLLECTED_AGAIN_S = 300;
const SETTLED_S = 3600;
const DOES_NOT_OPEN = "does not open";
// How many bytes files have, given names and blobs.
export const bytesOf = (files) => files.reduce((sum, { blob }) => sum + blob.size, 0);

// And sealed: age adds a head for each recipient, 16 bytes for each 64 KiB.
export function sealedBytes(files) {
  const nBytes = bytesOf(files) + frameBytes(files);
  return nBytes + 4096 + (Math.floor(nBytes / 65_536) + 1) * 16;
}

// What a hand-in of several files is called where there is room for one name.
function nameOf(files) {
  const tops = [...new Set(files.map(({ name }) => name.split("/")[0]))];
  return tops.length > 1 ? `${tops[0]}+${tops.length - 1}` : tops[0];
}

class Removed extends Error {}

export class NoRoom extends Error {
  constructor(free) {
    super("no room");
    this.free = free;
  }
}

// What a receipt proves, by numbers: nothing, a time, that a server has the file, that it is collected.
// Of receipts that older versions of this page have saved it is not known what they prove.
const UNKNOWN = -1;

// A page may stay open for days: a deadline may be moved meanwhile.
const AMENDMENTS_MS = 300_000;

export class Handing {
  // For which this tab works, or waits for its turn.
  #queued = new Set();

  // `original`: the event as its file says. `changed` is told that something is to be shown anew.
  constructor(original, store, helper, clock, changed) {
    this.original = original;
    this.event = original;
    this.store = store;
    this.items = new Map();
    // Whose receipts somebody has saved, and what they proved then.
    this.saved = new Map();
    // By item: what is under way in this tab, as `{ what, part }`.
    this.progress = new Map();
    // Null: no service has answered yet.
    this.amendments = null;
    this.helper = helper;
    this.clock = clock;
    this.changed = changed;
    this.others = new BroadcastChannel(`datacollect-${original.id}`);
    this.others.onmessage = () => this.read();
  }

  // Goes on with all that is kept here.
  async start() {
    this.amendments = (await this.store.said("amendments")) ?? null;
    this.event = amended(this.original, this.amendments ?? []);
    await this.read();
    this.learnAmendments();
    setInterval(() => this.learnAmendments(), AMENDMENTS_MS);
  }

  // Reads what is kept, and waits for its turn with each: another tab may be at work there, and go.
  async read() {
    const found = await this.store.items();
    const saved = (await this.store.said("saved")) ?? [];
    this.saved = saved instanceof Set ? new Map([...saved].map((id) => [id, UNKNOWN])) : new Map(saved);
    this.items = new Map(found.sort((a, b) => a.created - b.created).map((item) => [item.id, item]));
    for (const item of this.items.values()) if (this.#hasMore(item)) this.#goOn(item.id);
    this.changed();
  }

  // All services are asked: the one that took a file may not have taken a later deadline.
  async learnAmendments() {
    const { signal } = new AbortController();
    const asked = this.original.services.map((each) => amendmentsOf(each, this.original, signal));
    for (const { value } of await Promise.allSettled(asked)) {
      if (!value) continue;
      const rows = united([...(this.amendments ?? []), ...value]);
      try {
        this.event = amended(this.original, rows);
        this.amendments = rows;
      } catch {
        // This service says what is none: the event stays as it was.
      }
    }
    // Where there is no room they are asked for again.
    if (this.amendments) await this.store.say("amendments", this.amendments).catch(() => null);
    this.changed();
  }

  // Seals files, keeps them, and hands them in together. Throws where they cannot be sealed or kept:
  // nothing is committed then. `files`: names and blobs. `begun` is told the item's id once it is there.
  async handIn(files, ticket, begun) {
    const { id } = this.event;
    const salt = randomHex(32);
    const owner_seed = randomHex(32);
    const owner = publicOf(owner_seed);
    const said = handInStatement(id, salt, owner);
    const isOfSeveral = files.length > 1;
    const item = {
      id: randomHex(8),
      state: "sealing",
      created: Date.now(),
      event: id,
      name: nameOf(files),
      bytes: bytesOf(files),
      mtime_ms: files[0].blob.lastModified,
      ...(isOfSeveral && { files: files.map(fileOf) }),
      salt,
      header: isOfSeveral
        ? filesHeaderText(id, files.length, ticket?.id)
        : headerText(id, files[0].name, ticket?.id, this.event.content),
      secret: randomHex(32),
      ticket_signature: ticket ? hex(sign(ticket.seed, said)) : null,
      owner,
      // These two leave the browser in a `.keep` alone.
      owner_seed,
      ticket_seed: ticket?.seed ?? null,
      ticket: ticket?.token ?? null,
      receipt: emptyReceipt(),
      troubles: {},
    };
    await this.#alone(item.id, async () => {
      await this.store.put(item);
      this.#kept(item);
      begun(item.id);
      try {
        await this.#tryRoom(item, files);
        const { codes, ...sealed } = await this.#sealed(item, files);
        Object.assign(item, sealed);
        if (codes) item.files = item.files.map((each, i) => ({ ...each, code: codes[i] }));
        if (item.size > this.event.mostBytes) throw new RangeError("too long");
        // Once for all: no retry, at whatever service, makes another entry of it.
        item.mark = await markOf(item, this.event);
      } catch (error) {
        await this.#drop(item.id);
        throw error;
      }
      item.state = "sealed";
      await this.#save(item);
    });
    this.#goOn(item.id);
  }

  // The item, of this ticket, that already hands in these bytes and may count; undefined: there is none.
  // Where the last one counts, only the last one is: an earlier one may be handed in again. `comparing` is
  // called before bytes are read, which takes as long as sealing does.
  async sameAs(files, ticket, comparing) {
    const items = [...this.items.values()].filter((item) => this.#mayCount(item, ticket));
    for (const item of this.event.counts === "last" ? items.slice(-1) : items) {
      const isAlike = item.bytes === bytesOf(files) && (item.files?.length ?? 1) === files.length;
      if (!isAlike) continue;
      comparing();
      if ((await this.helper.ask({ digest: { files, inner: item } })) === item.content_p) return item;
    }
  }

  #mayCount(item, ticket) {
    const isKept = ["sealed", "lost"].includes(item.state) && !this.standing(item).isLate;
    return isKept && !isOut(item) && (item.ticket ?? null) === (ticket?.token ?? null);
  }

  // Seals the same files anew for an entry whose ciphertext is lost; false where they are others.
  async sealAnew(id, files) {
    let isSame = false;
    await this.#alone(id, async () => {
      const item = await this.store.item(id);
      const { size, ciphertext_sha256, content_p } = await this.#sealed(item, files);
      isSame = content_p === item.content_p;
      if (!isSame) return;
      // What a bistro has of another ciphertext is of no use there.
      const isHeld = holderOf(item.receipt, item, this.event);
      const given_up = isHeld ? null : (item.push?.url ?? null);
      Object.assign(item, { anew: { size, ciphertext_sha256 }, state: "sealed", push: null, given_up });
      await this.#save(item);
    });
    if (isSame) this.#goOn(id);
    return isSame;
  }

  // Asks again where all services have refused.
  async tryAgain(id) {
    await this.#alone(id, async () => {
      const item = await this.store.item(id);
      if (item?.state === "refused") await this.#save({ ...item, state: "sealed" });
    });
    this.#goOn(id);
  }

  async markSaved(id) {
    // Beside the item, which another tab may be working on.
    this.saved.set(id, this.standing(this.items.get(id)).proves);
    await this.store.say("saved", this.saved);
    this.others.postMessage(id);
    this.changed();
  }

  // Removes an item, its keys and its ticket, unless another item here is of the same one.
  async forget(id) {
    const { ticket } = this.items.get(id) ?? {};
    await this.#drop(id);
    const isShared = [...this.items.values()].some((item) => item.ticket === ticket);
    if (!isShared) await this.store.unsay("ticket");
  }

  // What is known of an item, for people and for what comes next.
  standing(item) {
    const { event } = this;
    if (!item.ciphertext_sha256) return { entry: null, proves: 0 };
    const entry = entryOf(item);
    const time = receiptTime(item.receipt, entry, event);
    const holder = holderOf(item.receipt, item, event);
    const collected = collectedTime(item.receipt.collected, entry, event);
    return {
      entry,
      // What people can write down, and organisers find: the beginning of the entry.
      code: `${entry.slice(0, 5)}\u00a0${entry.slice(5, 10)}`,
      time,
      proves: time === undefined ? 0 : collected !== undefined ? 3 : holder ? 2 : 1,
      isLate: time !== undefined && time > latest(event),
      word: item.receipt.acknowledgements[0],
      nLogs: new Set(item.receipt.proofs.map((proof) => proof.split("\n\n")[1]?.split("\n")[0])).size,
      holder,
      collected,
    };
  }

  #alone(id, act) {
    return navigator.locks.request(`datacollect-${this.event.id}-${id}`, act);
  }

  async #drop(id) {
    await this.store.drop(id);
    this.others.postMessage(id);
    await this.read();
  }

  // Keeps an item as it is now; throws where somebody has removed it, in this tab or another.
  async #save(item) {
    if (!(await this.store.change(item))) {
      await this.store.drop(item.id);
      throw new Removed("it was removed");
    }
    this.#kept(item);
  }

  #kept(item) {
    this.items.set(item.id, item);
    this.others.postMessage(item.id);
    this.changed();
  }

  // Writes so many bytes as the sealed file has, and removes them: what browsers say of their room, in
  // private windows above all, is not so, and sealing takes minutes where this takes seconds.
  async #tryRoom({ id, event }, files) {
    const nBytes = sealedBytes(files);
    this.#progressed(id, "room");
    const order = { id, event, nBytes };
    const fits = await this.helper.ask({ room: order }).finally(() => this.progress.delete(id));
    if (fits < nBytes) throw new NoRoom(fits);
  }

  #sealed(item, files) {
    const { id, event, header, secret, ticket_signature } = item;
    const inner = { header, secret, ticket_signature };
    const order = { id, event, inner, files, recipients: this.event.recipients };
    return this.helper.ask({ seal: order }, (nRead) => {
      this.#progressed(id, "sealing", nRead / Math.max(item.bytes, 1));
    }).finally(() => this.progress.delete(id));
  }

  #progressed(id, what, part, where) {
    this.progress.set(id, { what, part, where });
    this.changed();
  }

  #goOn(id) {
    if (this.#queued.has(id)) return;
    this.#queued.add(id);
    this.#alone(id, () => this.#work(id))
      .catch((error) => {
        if (error instanceof Removed) return;
        this.progress.set(id, { what: "stopped", words: error.message });
        this.changed();
      })
      .finally(() => this.#queued.delete(id));
  }

  // Does what is left to be done for an item, as it is on the disk.
  async #work(id) {
    const item = await this.store.item(id);
    const save = (changed) => this.#save(changed);
    if (!item) return;
    if (item.state === "sealing") await save({ ...item, state: "interrupted" });
    if (item.state !== "sealed") return;
    if (this.standing(item).time === undefined) {
      const isProved = await prove(item, () => this.event, save);
      await save(isProved ? item : { ...item, state: "refused" });
      if (!isProved) {
        // It may be cancelled.
        this.learnAmendments();
        return;
      }
    }
    while (this.#isToBePushed(item)) {
      const ciphertext = await this.store.ciphertext(item);
      if (!ciphertext) {
        await save({ ...item, state: "lost" });
        return;
      }
      const progressed = (where, part) => this.#progressed(id, "sending", part, where);
      const isHeld = await push(item, ciphertext, this.event, save, progressed);
      this.progress.delete(id);
      this.changed();
      if (!isHeld) await sleep(PUSH_AGAIN_S);
    }
    await this.#askVerdict(item, save);
  }

  // Whether something is left to be done, as far as is known here.
  #hasMore(item) {
    if (item.state !== "sealed") return item.state === "sealing";
    const { time } = this.standing(item);
    const isAsked = this.event.verdicts?.url && this.#isUnsettled(item);
    return time === undefined || this.#isToBePushed(item) || isAsked;
  }

  #isToBePushed(item) {
    const { holder, isLate } = this.standing(item);
    const isOpen = this.clock.now() < this.event.collectUntil && !this.event.cancelled;
    return this.event.bistros.length > 0 && !holder && !isLate && isOpen;
  }

  // Asks what became of it until that is settled; what does not open is to be sealed anew.
  async #askVerdict(item, save) {
    const { signal } = new AbortController();
    const { url } = this.event.verdicts ?? {};
    const { entry } = this.standing(item);
    while (url && this.items.has(item.id) && this.#isUnsettled(item)) {
      const isCollected = this.standing(item).collected !== undefined;
      try {
        const found = readVerdict(await verdictOn(url, entry, signal), entry, this.event);
        if (found && (found.word !== item.verdict?.word || found.why !== item.verdict.why)) {
          const { proof, ...verdict } = found;
          // The ticket's owner alone can see that, besides the destination.
          const isOwn = verdict.word !== "superseded" || (await isOfSameTicket(verdict.why, item, this.event));
          item.verdict = { ...verdict, isByStranger: !isOwn };
          if (verdict.word === "collected") {
            item.receipt.collected = collectedText(proof, verdict.why);
          }
          if (verdict.why === DOES_NOT_OPEN && !item.anew) item.state = "lost";
          await save(item);
          continue;
        }
      } catch {
        // Not yet, or not there now.
      }
      await sleep(isCollected ? COLLECTED_AGAIN_S : VERDICT_AGAIN_S);
    }
  }

  // Whether the destination may still say something else of it: also of what is collected, until the
  // event is settled.
  #isUnsettled(item) {
    const { holder, collected } = this.standing(item);
    const isRefused = item.verdict?.word === "refused" && item.verdict.why !== DOES_NOT_OPEN;
    const isSaid = collected !== undefined || item.verdict?.word === "superseded";
    const isSettled = isSaid && this.clock.now() > this.event.collectUntil + SETTLED_S;
    return item.state === "sealed" && holder && !isSettled && !isRefused;
  }
}

const fileOf = ({ name, blob }) => ({ name, bytes: blob.size, mtime_ms: blob.lastModified });

// Each amendment once, with all its proofs.
function united(rows) {
  const proofs = new Map();
  for (const row of rows) {
    proofs.set(row.note, new Set([...(proofs.get(row.note) ?? []), ...row.proofs]));
  }
  return [...proofs].map(([note, found]) => ({ note, proofs: [...found] }));
}
