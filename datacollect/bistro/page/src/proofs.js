// By when an entry stood in a log, whatever fewer than k witnesses say: no clock of a reader counts.
import { base64, isEqual, utf8 } from "./bytes.js";
import { cosignedTimes, isBy, readCheckpoint, whole } from "./notes.js";
import { leaf, pathRoot } from "./tree.js";

const MOST_PROOF_BYTES = 32_768;

export function readProof(text) {
  if (utf8(text).length > MOST_PROOF_BYTES) throw new Error("is too long");
  const gap = text.indexOf("\n\n");
  const lines = text.slice(0, gap).split("\n");
  if (gap < 0 || lines.shift() !== "c2sp.org/tlog-proof@v1") throw new Error("is no proof");
  // What else somebody has put there is not authenticated, and read by nobody.
  if (lines[0]?.startsWith("extra ")) lines.shift();
  const first = lines.shift() ?? "";
  if (!first.startsWith("index ") || lines.length > 63) throw new Error("is no proof");
  const hashes = lines.map((line) => base64.decode(line));
  if (hashes.some((each) => each.length !== 32)) throw new Error("a hash has 32 bytes");
  return {
    index: whole(first.slice(6)),
    hashes,
    checkpoint: readCheckpoint(utf8(text.slice(gap + 2))),
  };
}

// Whether a checkpoint's tree has an entry, given its bytes.
function includes({ index, hashes, checkpoint: { size, root } }, entry) {
  const found = pathRoot(leaf(entry), index, size, hashes);
  return found !== null && isEqual(found, root);
}

// The k-th smallest time of distinct witnesses' keys; `why` says by a text's key why there is none.
export function timeIn(log, proof, entry, event) {
  if (!log || proof.checkpoint.origin !== log.name) return { why: "not_of_event" };
  if (!includes(proof, entry)) return { why: "other_entry" };
  if (!isBy(proof.checkpoint.note, log)) return { why: "not_signed" };
  const times = cosignedTimes(proof.checkpoint.note, event.witnesses).sort((a, b) => a - b);
  if (times.length < event.quorum) return { why: "too_few", n: times.length, k: event.quorum };
  return { time: times[event.quorum - 1], n_witnesses: times.length };
}

export function provedTime(text, entry, event) {
  let proof;
  try {
    proof = readProof(text);
  } catch {
    return { why: "no_proof" };
  }
  const { origin } = proof.checkpoint;
  const log = event.services.find((each) => each.log.name === origin)?.log;
  return { log: origin, ...timeIn(log, proof, entry, event) };
}
