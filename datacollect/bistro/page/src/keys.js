// Keys of a content's parts, by the secret that lies inside its seal.
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { unhex, utf8 } from "./bytes.js";

export const keyOf = (secret, what) =>
  hmac(sha256, unhex(secret), utf8(`datacollect-content-key/2\n${what}`));

// `number`: in hexadecimal digits; none where the event has no tickets.
export const ticketCode = (secret, number) =>
  hmac(sha256, keyOf(secret, "ticket"), unhex(number, number.length / 2));
