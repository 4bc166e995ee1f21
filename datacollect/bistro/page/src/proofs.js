// By when an entry stood in a log, whatever fewer than k witnesses say: no clock of a reader counts.
import { sha256 } from "@noble/hashes/sha2.js";
import { base64, isEqual, joined, utf8 } from "./bytes.js";
import { cosignedTimes, isBy, readCheckpoint, whole } from "./notes.js";

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

const node = (left, right) => sha256(joined(Uint8Array.of(1), left, right));

// RFC 9162, 2.1.3.2. `entry`: its bytes.
function includes({ index, hashes, checkpoint }, entry) {
  if (index >= checkpoint.size) return false;
  let at = index;
  let last = checkpoint.size - 1;
  let found = sha256(joined(Uint8Array.of(0), entry));
  for (const sibling of hashes) {
    if (last === 0) return false;
    if (at % 2 || at === last) {
      found = node(sibling, found);
      while (at && at % 2 === 0) {
        at = Math.floor(at / 2);
        last = Math.floor(last / 2);
      }
    } else {
      found = node(found, sibling);
    }
    at = Math.floor(at / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 && isEqual(found, checkpoint.root);
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
