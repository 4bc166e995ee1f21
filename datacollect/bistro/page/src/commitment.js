// What a log holds for what somebody hands in: 32 bytes that bind it and tell nothing of it.
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bigEndian, hex, joined, unhex, utf8 } from "./bytes.js";

// What of an entry binds where it has a mark.
export const MARKED_DIGITS = 48;

// Of a commitment: `event`, `salt`, `ciphertext_sha256`, `content_p`, `owner` in hexadecimal digits,
// `size`, and `mark`, the end of the entry where the event has marks. Those of older events have no
// owner.
export function entryOf(commitment) {
  const digits = hex(
    sha256(
      joined(
        utf8(`datacollect-commitment/${commitment.owner ? 2 : 1}\n`),
        unhex(commitment.event),
        unhex(commitment.salt),
        bigEndian(commitment.size, 8),
        unhex(commitment.ciphertext_sha256),
        unhex(commitment.content_p),
        commitment.owner ? unhex(commitment.owner) : new Uint8Array(),
      ),
    ),
  );
  return commitment.mark ? digits.slice(0, MARKED_DIGITS) + commitment.mark : digits;
}

export function headerText(event, name, ticket) {
  // Keys in order, as they are sealed and committed to.
  const header = ticket ? { event, name, ticket } : { event, name };
  return JSON.stringify(header);
}

// Begins what an entry says of a content: it is to be updated with the file's bytes.
export function contentCode(secret, header) {
  const code = hmac.create(sha256, unhex(secret));
  const bytes = utf8(header);
  return code.update(utf8("datacollect-content/1\n")).update(bigEndian(bytes.length, 4)).update(bytes);
}
