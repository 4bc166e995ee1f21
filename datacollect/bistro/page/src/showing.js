// `NAME.proof`: beside a receipt it shows which file that is of, and neither its name nor whose it is.
import { textOf, unhex } from "./bytes.js";
import { entryOf, openingOf } from "./commitment.js";

const FORMAT = "datacollect-proof/1";
export const MOST_BYTES = 4096;

// The text of an item's proof; null where its `.keep` alone shows the file, as at older events.
export function proofText(item) {
  const opening = openingOf(item.secret, item.header);
  if (!opening) return null;
  const { key, name, ticket } = opening;
  return `${JSON.stringify({ format: FORMAT, entry: entryOf(item), key, name, ticket })}\n`;
}

// What a proof opens of a receipt, for `openedCode`; an error where it is none, or of another one.
export function readShown(bytes, receipt) {
  const tree = bytes.length <= MOST_BYTES ? JSON.parse(textOf(bytes)) : null;
  if (tree?.format !== FORMAT || Object.keys(tree).length !== 5) throw new Error("is no proof");
  const { entry, key, name, ticket } = tree;
  for (const digits of [entry, key, name, ticket]) unhex(digits);
  if (entry !== entryOf(receipt)) throw new Error("is the proof of another receipt");
  return { event: receipt.event, key, name, ticket };
}
