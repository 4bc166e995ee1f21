// A receipt checked with nothing but the page: no network, no clock.
import { entryOf } from "./commitment.js";
import { readKeep } from "./keep.js";
import { readReceipt, verdictOf } from "./receipt.js";

const AGE = "age-encryption.org/v1\n";

// Sentences about what a receipt proves of what is shown. `digest` hashes blobs, in a worker.
export async function checkReceipt(bytes, file, handing, items, digest, texts) {
  const receipt = readReceipt(bytes);
  const shown = file && (await shownOf(file, receipt, items, digest));
  const found = verdictOf(receipt, handing.original, handing.amendments, shown);
  const written = (values) => ({ ...values, time: values.time && texts.instant(values.time) });
  const covers = texts.say(`covers_${found.covers ?? "bytes"}`);
  return [
    texts.say(found.outcome, written({ covers, time: found.time })),
    ...found.reasons.map(([key, values]) => texts.say(key, written(values))),
  ];
}

// What of a file is held against a receipt, and whether it is what was handed in.
async function shownOf(file, receipt, items, digest) {
  const isSealed = async (blob) =>
    blob.size === receipt.size && (await digest(blob)) === receipt.ciphertext_sha256;
  const kept = await readKeep(file);
  if (kept) return { what: "sealed_file", is: await isSealed(kept.ciphertext) };
  const item = items.find((each) => each.ciphertext_sha256 && entryOf(each) === entryOf(receipt));
  if (item && (await digest(file, item)) === receipt.content_p) return { what: "file", is: true };
  if ((await file.slice(0, AGE.length).text()) === AGE) {
    return { what: "sealed_file", is: await isSealed(file) };
  }
  return { what: item ? "file" : "known", is: false };
}
