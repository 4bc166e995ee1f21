// What lets an upload begin: it opens an entry, proves its time, and is signed for one bistro.
import { base64, unhex, utf8 } from "./bytes.js";
import { entryOf } from "./commitment.js";
import { provedTime } from "./proofs.js";
import { pushStatement, sign } from "./statements.js";

function commitmentOf({ salt, size, ciphertext_sha256, content_p, owner }) {
  return JSON.stringify({ salt, size, sha256: ciphertext_sha256, content_p, owner });
}

// The header `Upload-Metadata`. Some values are bytes that are no text, which tus-js-client cannot send.
export function metadataText(item, event, bistro) {
  const entry = entryOf(item);
  const timeOf = (proof) => provedTime(proof, unhex(entry), event).time ?? Infinity;
  const { ciphertext_sha256: sha256, size } = item.anew ?? item;
  const ticket = item.ticket ? JSON.parse(item.header).ticket : "0".repeat(32);
  const said = pushStatement(event.id, bistro.key, entry, sha256, size, ticket);
  const values = {
    commitment: utf8(commitmentOf(item)),
    owner: sign(item.owner_seed, said),
    proof: utf8(item.receipt.proofs.reduce((a, b) => (timeOf(b) < timeOf(a) ? b : a))),
  };
  if (item.ticket) {
    values.ticket = utf8(item.ticket);
    values.holder = sign(item.ticket_seed, said);
  }
  if (sha256 !== item.ciphertext_sha256) values.sha256 = unhex(sha256);
  return Object.entries(values)
    .map(([name, bytes]) => `${name} ${base64.encode(bytes)}`)
    .join(",");
}
