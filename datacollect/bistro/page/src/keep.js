// `NAME.keep`: the ciphertext, what is known of it, and an end by which it is recognised.
import { sha256 } from "@noble/hashes/sha2.js";
import { asciiJson, bigEndian, isEqual, joined, textOf, utf8 } from "./bytes.js";

const MAGIC = utf8("datacollect-keep/2\n");
// Of several files.
const SEVERAL_MAGIC = utf8("datacollect-keep/3\n");
// Of older events.
const OLDER_MAGIC = utf8("datacollect-keep/1\n");
const END_BYTES = 32 + 4 + MAGIC.length;

function endOf(told, magic) {
  return joined(sha256(told), bigEndian(told.length, 4), magic);
}

export function keepOf(ciphertext, item) {
  const tree = asciiJson({
    event: item.event,
    salt: item.salt,
    header: item.header,
    secret: item.secret,
    ticket_signature: item.ticket_signature,
    owner_seed: item.owner_seed,
    ticket: item.ticket,
    ticket_seed: item.ticket_seed,
    size: item.size,
    ciphertext_sha256: item.ciphertext_sha256,
    content_p: item.content_p,
  });
  const files = item.files
    ? `"files":[${item.files.map((file) => `{"name":${asciiJson(file.name)},${versionOf(file)},"code":"${file.code}"}`)}]`
    : `"file":{${versionOf(item)}}`;
  const told = utf8(`${tree.slice(0, -1)},${files}}`);
  return new Blob([ciphertext, told, endOf(told, item.files ? SEVERAL_MAGIC : MAGIC)]);
}

// Nanoseconds are more than a number of this language holds.
const versionOf = ({ bytes, mtime_ms }) =>
  `"bytes":${bytes},"mtime_ns":${mtime_ms ? `${mtime_ms}000000` : "0"}`;

// What a `.keep` says and its ciphertext; null where the bytes are none.
export async function readKeep(blob) {
  if (blob.size < END_BYTES) return null;
  const end = new Uint8Array(await blob.slice(-END_BYTES).arrayBuffer());
  const magic = end.slice(36);
  if (![MAGIC, SEVERAL_MAGIC, OLDER_MAGIC].some((each) => isEqual(magic, each))) return null;
  const length = new DataView(end.buffer).getUint32(32);
  const stop = blob.size - END_BYTES;
  const told = new Uint8Array(await blob.slice(Math.max(0, stop - length), stop).arrayBuffer());
  if (!isEqual(end, endOf(told, magic))) throw new Error("what it says of its ciphertext is damaged");
  return { ...JSON.parse(textOf(told)), ciphertext: blob.slice(0, stop - length) };
}
