// Trees of hashes (RFC 6962, 2.1): of logs, and of the files of a hand-in.
import { sha256 } from "@noble/hashes/sha2.js";
import { joined } from "./bytes.js";

export const leaf = (bytes) => sha256(joined(Uint8Array.of(0), bytes));

const node = (left, right) => sha256(joined(Uint8Array.of(1), left, right));

// The levels of a tree, the leaves first, the root last: one that has no neighbour goes up as it is.
export function levelsOf(leaves) {
  const levels = [leaves];
  for (let below = leaves; below.length > 1; levels.push(below)) {
    const { length } = below;
    const pairs = Array.from({ length: Math.ceil(length / 2) }, (_, i) => below.slice(2 * i, 2 * i + 2));
    below = pairs.map(([left, right]) => (right ? node(left, right) : left));
  }
  return levels;
}

// The hashes from a leaf's neighbour up.
export const pathOf = (levels, index) =>
  levels.slice(0, -1).flatMap((level, n) => level[Math.floor(index / 2 ** n) ^ 1] ?? []);

// The root that a leaf and its path make (RFC 9162, 2.1.3.2); null: no tree of that size has it.
export function pathRoot(found, index, size, hashes) {
  if (index >= size) return null;
  let at = index;
  let last = size - 1;
  for (const sibling of hashes) {
    if (last === 0) return null;
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
  return last === 0 ? found : null;
}
