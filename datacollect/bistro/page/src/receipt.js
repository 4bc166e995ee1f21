// Receipts: what proves, without any network, what was handed in and by when.
import { base64, hex, textOf, unhex, utf8 } from "./bytes.js";
import { entryOf } from "./commitment.js";
import { amended, latest } from "./event.js";
import { isSigned, tokenPayload, unverifiedPayload } from "./notes.js";
import { provedTime, readProof, timeIn } from "./proofs.js";

const FORMAT = "datacollect-receipt/2";
// Of older events, whose entries have no owner.
const OLDER_FORMAT = "datacollect-receipt/1";
const MOST_BYTES = 16 * 2 ** 20;

export const emptyReceipt = () => ({
  acknowledgements: [],
  proofs: [],
  tokens: [],
  bistro_receipts: [],
  collected: null,
});

// The file of an item's receipt.
export function receiptFile(item) {
  const { event, salt, size, ciphertext_sha256, content_p, owner, mark } = item;
  const commitment = { event, salt, size, ciphertext_sha256, content_p, owner, ...(mark && { mark }) };
  const tree = { format: FORMAT, ...commitment, ...item.receipt };
  return new Blob([`${JSON.stringify(tree, null, 1)}\n`], { type: "application/json" });
}

export function readReceipt(bytes) {
  const tree = bytes.length <= MOST_BYTES ? JSON.parse(textOf(bytes)) : null;
  if (![FORMAT, OLDER_FORMAT].includes(tree?.format)) throw new Error("is no receipt");
  const named = tree.format === FORMAT ? ["owner"] : [];
  for (const name of ["event", "salt", "ciphertext_sha256", "content_p", ...named]) unhex(tree[name]);
  if (!named.length && (tree.owner ?? null) !== null) throw new Error("is no receipt");
  if ((tree.mark ?? null) !== null) unhex(tree.mark, 8);
  if (!Number.isSafeInteger(tree.size) || tree.size < 0) throw new Error("is no receipt");
  return { ...emptyReceipt(), ...tree };
}

// Whether a service's log has given its word for an entry.
export function isAcknowledged(word, entry, event) {
  const log = event.services.find((each) => each.log.name === word.log)?.log;
  const lines = ["datacollect-acknowledgement/1", word.log, entry, word.index, word.time_s, ""];
  try {
    return Boolean(log) && isSigned(utf8(lines.join("\n")), base64.decode(word.signature), log.key);
  } catch {
    return false;
  }
}

// The least time that a receipt's proofs prove; undefined: none does.
export function receiptTime(receipt, entry, event) {
  const found = receipt.proofs.map((proof) => provedTime(proof, unhex(entry), event).time);
  return least(found.filter((time) => time !== undefined));
}

const least = (times) => (times.length ? Math.min(...times) : undefined);

// Which bistro of the event holds what was committed to, by its signed word, and since when.
export function holderOf(receipt, item, event) {
  for (const token of receipt.bistro_receipts) {
    try {
      const name = unverifiedPayload(token).bistro;
      const { key } = event.bistros.find((each) => each.name === name);
      const word = tokenPayload(token, key, "datacollect-bistro-receipt/1");
      const isMine = word.event === item.event && word.entry === entryOf(item);
      const held = item.anew ?? item;
      const isAll = word.size === held.size && word.sha256 === held.ciphertext_sha256;
      const isThis = isAll && word.sealed_anew === Boolean(item.anew);
      if (word.v === 1 && isMine && isThis) return { name, time: word.time_s };
    } catch {
      // It is by none of the event's bistros, or no token at all.
    }
  }
  return null;
}

// By when the log of verdicts held something; one that has ended counts for what it had proved by then.
function verdictTime(proof, said, event) {
  const ended = event.ended.find(({ log }) => log.name === proof.checkpoint.origin);
  const found = timeIn((ended ?? event.verdicts)?.log, proof, said, event);
  return ended && found.time > ended.until ? { why: "not_of_event" } : found;
}

// What the destination's log says of an entry, by its answer: `word`, `why`, `time`, `proof`; null
// where nothing is proved yet. Throws where it does not count.
export function readVerdict(answer, entry, event) {
  const { verdict, proof } = JSON.parse(answer);
  if (proof === null) return null;
  const [label, id, of, last, end] = verdict.split("\n");
  const found = verdictTime(readProof(proof), utf8(verdict), event);
  const isMine = label === "datacollect-verdict/1" && id === event.id && of === entry && end === "";
  if (!isMine || found.time === undefined) throw new Error("its verdict does not count");
  const [, word, why] = /^(\w+)(?:: (.*))?$/.exec(last);
  return { word, why, time: found.time, proof };
}

const PROOF = "c2sp.org/tlog-proof@v1\n";
const EXTRA = /^c2sp\.org\/tlog-proof@v1\nextra ([^\n]*)\n/;

// What a receipt keeps of the proof that an entry was collected. `why`: the entry that had superseded
// it where it counts again, which stands in the line of a proof that is for whoever uses it.
export function collectedText(proof, why) {
  const rest = proof.replace(EXTRA, PROOF).slice(PROOF.length);
  return `${PROOF}${why ? `extra ${base64.encode(unhex(why))}\n` : ""}${rest}`;
}

export function collectedTime(proof, entry, event) {
  if (!proof || !event.verdicts) return undefined;
  try {
    const why = hex(base64.decode(EXTRA.exec(proof)?.[1] ?? ""));
    const word = why ? `collected: ${why}` : "collected";
    const said = utf8(`datacollect-verdict/1\n${event.id}\n${entry}\n${word}\n`);
    // One text for one meaning.
    if (collectedText(proof, why) !== proof) return undefined;
    return verdictTime(readProof(proof), said, event).time;
  } catch {
    return undefined;
  }
}

// What a receipt proves of the page's event. `shown`: what was held against it, by `what` and `is`.
// Each reason is the key of a text and its values.
export function verdictOf(tree, event, amendments, shown) {
  const reasons = [];
  // Without an owner it is none of this event; nor with a mark where those have none.
  const isMine = tree.event === event.id && tree.owner && Boolean(tree.mark) === event.hasMarks;
  if (!isMine) return { outcome: "not_proved", reasons: [["other_event", {}]] };
  const now = amended(event, amendments ?? []);
  if (!amendments) reasons.push(["no_amendments", {}]);
  if (now.cancelled) reasons.push(["was_cancelled", now.cancelled]);
  if (shown && !shown.is) reasons.push([`not_${shown.what}`, {}]);
  if (!shown) reasons.push(["some_bytes", {}]);
  const entry = entryOf(tree);
  for (const word of tree.acknowledgements) {
    const isGood = isAcknowledged(word, entry, now);
    reasons.push(isGood ? ["word", { time: word.time_s }] : ["no_word", {}]);
  }
  tree.proofs.forEach((proof, i) => {
    const found = provedTime(proof, unhex(entry), now);
    if (found.why) reasons.push([`proof_${found.why}`, { ...found, i: i + 1 }]);
  });
  if (tree.tokens.length) reasons.push(["tokens_elsewhere", {}]);
  const time = receiptTime(tree, entry, now);
  const collected = collectedTime(tree.collected, entry, now);
  if (tree.collected && collected === undefined) reasons.push(["not_collected", {}]);
  if (event.alone) reasons.push(["alone", {}]);
  const isOf = !shown || shown.is;
  if (time === undefined || !isOf) return { outcome: "not_proved", reasons };
  const outcome = time <= latest(now) ? "in_time" : "late_time";
  return { outcome, time, deadline: now.deadline, collected, covers: shown?.what ?? "bytes", reasons };
}
