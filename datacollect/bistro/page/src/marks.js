// Marks: of which ticket an entry is, known to its owner and to the destination alone. What both can
// make is the key of a code of the beginning of an entry, which stands at its end.
import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { hex, joined, unhex, utf8 } from "./bytes.js";
import { entryOf, MARKED_DIGITS } from "./commitment.js";

// The mark of what somebody hands in: 16 hexadecimal digits; null where the event has none.
export const markOf = async (item, event) =>
  event.hasMarks ? markBy(item, entryOf({ ...item, mark: null }), event) : null;

// Whether an entry is of the same ticket; where events have no marks, nobody can see that.
export const isOfSameTicket = async (entry, item, event) =>
  !event.hasMarks || entry.slice(MARKED_DIGITS) === (await markBy(item, entry, event));

async function markBy(item, entry, event) {
  // That of the event's file, whatever log has succeeded it.
  const { key: point } = event.ended?.[0]?.log ?? event.verdicts.log;
  const secret = ed25519.utils.toMontgomerySecret(unhex(item.ticket_seed));
  const shared = x25519.getSharedSecret(secret, ed25519.utils.toMontgomery(point));
  const made = hkdf(sha256, shared, unhex(event.id), utf8("datacollect-mark/2\n"), 33);
  const beginning = unhex(entry.slice(0, MARKED_DIGITS), 24);
  const key = await crypto.subtle.importKey("raw", made.slice(0, 32), "AES-CBC", false, ["encrypt"]);
  const way = { name: "AES-CBC", iv: new Uint8Array(16) };
  const code = await crypto.subtle.encrypt(way, key, joined(beginning, new Uint8Array(8)));
  return hex(joined(made.slice(32), new Uint8Array(code, 16, 7)));
}
