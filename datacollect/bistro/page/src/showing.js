// `NAME.proof`: beside a receipt it shows which file that is of, and neither its name nor whose it is.
import { textOf, unhex } from "./bytes.js";
import { entryOf, openingOf } from "./commitment.js";
import { fileOpenings, MOST_FILES } from "./files.js";

const FORMAT = "datacollect-proof/1";
// Of one of several files.
const FORMAT_OF_SEVERAL = "datacollect-proof/2";
export const MOST_BYTES = 4096;

// Whether an item's files are shown by proofs; at older events its `.keep` alone shows the file.
export const hasProofs = ({ header, files }) => Boolean(files || openingOf("0".repeat(64), header));

// Makes the text of an item's proof, or of each file's, by its index.
export function proofTexts(item) {
  const openings = item.files ? fileOpenings(item) : () => openingOf(item.secret, item.header);
  const entry = entryOf(item);
  const format = item.files ? FORMAT_OF_SEVERAL : FORMAT;
  return (index = 0) => {
    const { event: _, ...opening } = openings(index);
    return `${JSON.stringify({ format, entry, ...opening })}\n`;
  };
}

// What a proof opens of a receipt, for `openedCode`; an error where it is none, or of another one.
export function readShown(bytes, receipt) {
  const tree = bytes.length <= MOST_BYTES ? JSON.parse(textOf(bytes)) : null;
  const { format, entry, key, name, ticket, ...among } = tree ?? {};
  const isOne = format === FORMAT && Object.keys(among).length === 0;
  if (!isOne && !(format === FORMAT_OF_SEVERAL && isAmong(among))) throw new Error("is no proof");
  for (const digits of [entry, key, name, ticket]) unhex(digits);
  if (entry !== entryOf(receipt)) throw new Error("is the proof of another receipt");
  return { event: receipt.event, key, name, ticket, ...among };
}

function isAmong({ index, count, path, ...more }) {
  const areWhole = Number.isInteger(index) && Number.isInteger(count);
  if (!areWhole || index < 0 || index >= count || count < 2 || count > MOST_FILES) return false;
  for (const digits of path) unhex(digits);
  return path.length > 0 && path.length <= 14 && Object.keys(more).length === 0;
}
