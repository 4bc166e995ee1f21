// What a log holds for what somebody hands in: 32 bytes that bind it and tell nothing of it.
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bigEndian, hex, joined, unhex, utf8 } from "./bytes.js";
import { FilesCode, isOfSeveral, openedFileCode } from "./files.js";
import { keyOf, ticketCode } from "./keys.js";

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

// Of contents whose name and ticket are committed to apart: an event names it, and so does each header.
export const OPENED_CONTENT = "datacollect-content/2";
const OPENED_HEADER = `{"content":"${OPENED_CONTENT}",`;

export function headerText(event, name, ticket, content) {
  // Keys in order, as they are sealed and committed to.
  return JSON.stringify({ ...(content && { content }), event, name, ...(ticket && { ticket }) });
}

// Begins what an entry says of a content: it is to be updated with the file's bytes; of several files
// also to be told where each one begins.
export function contentCode(secret, header) {
  if (isOfSeveral(header)) return new FilesCode(secret, header);
  const opening = openingOf(secret, header);
  if (opening) return openedCode(opening);
  const code = hmac.create(sha256, unhex(secret));
  const bytes = utf8(header);
  return code.update(utf8("datacollect-content/1\n")).update(bigEndian(bytes.length, 4)).update(bytes);
}

// What opens the commitment to a content, and tells neither name nor ticket: `event`, `key`, `name` and
// `ticket` in hexadecimal digits. Null where the header is committed to as a whole.
export function openingOf(secret, header) {
  if (!header.startsWith(OPENED_HEADER)) return null;
  const { event, name, ticket = "" } = JSON.parse(header);
  return {
    event,
    key: hex(keyOf(secret, "file")),
    name: hex(hmac(sha256, keyOf(secret, "name"), utf8(name))),
    ticket: hex(ticketCode(secret, ticket)),
  };
}

// As `contentCode`, by what is shown of it; of several files one.
export function openedCode(opening) {
  if (opening.path) return openedFileCode(opening);
  const { event, key, name, ticket } = opening;
  const code = hmac.create(sha256, unhex(key));
  return code
    .update(utf8("datacollect-content/2\n"))
    .update(joined(unhex(event), unhex(name), unhex(ticket)));
}
