// A receipt checked with nothing but the page: no network, no clock.
import { entryOf } from "./commitment.js";
import { fileOpenings } from "./files.js";
import { readKeep } from "./keep.js";
import { readReceipt, verdictOf } from "./receipt.js";
import { MOST_BYTES, readShown } from "./showing.js";

const TIMES = ["time", "deadline", "collected", "at"];
const AGE = "age-encryption.org/v1\n";

// Sentences about what a receipt proves of what is shown: the first one says which file, by when, and
// whether it was collected. `proof`: the file's, if there is one. `digest` hashes blobs, in a worker.
export async function checkReceipt(bytes, file, proof, handing, items, digest, texts) {
  const receipt = readReceipt(bytes);
  const shown = file && (await shownOf(file, proof, receipt, items, digest));
  const found = verdictOf(receipt, handing.original, handing.amendments, shown);
  const covers = texts.say(`covers_${found.covers ?? "bytes"}`, { name: file?.name, ...shown?.among });
  const first = found.collected === undefined ? found.outcome : `${found.outcome}_collected`;
  return [[first, { ...found, covers }], ...found.reasons].map(([key, values]) =>
    texts.say(key, withInstants(values, texts)),
  );
}

function withInstants(values, texts) {
  const written = { ...values };
  for (const name of TIMES) if (values[name] !== undefined) written[name] = texts.instant(values[name]);
  return written;
}

// What of a file is held against a receipt, and whether it is what was handed in.
async function shownOf(file, proof, receipt, items, digest) {
  const isContent = async (by) => (await digest(file, by)) === receipt.content_p;
  const isSealed = async (blob) =>
    blob.size === receipt.size && (await digest(blob)) === receipt.ciphertext_sha256;
  if (proof) {
    const opening = await openingBy(proof, receipt);
    if (!opening) return { what: "proof", is: false };
    if (await isContent({ opening })) return ofSeveral(opening);
  }
  const kept = await readKeep(file);
  if (kept) return { what: "sealed_file", is: await isSealed(kept.ciphertext) };
  const item = items.find((each) => each.ciphertext_sha256 && entryOf(each) === entryOf(receipt));
  if (item && !item.files && (await isContent({ inner: item }))) return { what: "file", is: true };
  const openingAt = item?.files && fileOpenings(item);
  for (const [i, { bytes }] of (item?.files ?? []).entries()) {
    const opening = bytes === file.size && openingAt(i);
    if (opening && (await isContent({ opening }))) return ofSeveral(opening);
  }
  if ((await file.slice(0, AGE.length).text()) === AGE) {
    return { what: "sealed_file", is: await isSealed(file) };
  }
  return { what: item || proof ? "file" : "known", is: false };
}

// The file itself, and which one of those that were handed in with it.
const ofSeveral = ({ index, count }) =>
  count ? { what: "one_of", is: true, among: { i: index + 1, n: count } } : { what: "file", is: true };

// What a proof opens of a receipt; null where it is none of it.
async function openingBy(proof, receipt) {
  const data = await proof.slice(0, MOST_BYTES + 1).arrayBuffer();
  try {
    return readShown(new Uint8Array(data), receipt);
  } catch {
    return null;
  }
}
