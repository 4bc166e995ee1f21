// What tickets and owners sign, each for one receiver, so that no other can repeat it. Browsers have
// Ed25519 of their own only of late: all of them sign by the same code here.
import { ed25519 } from "@noble/curves/ed25519.js";
import { base64, hex, unhex, utf8 } from "./bytes.js";
import { publicText } from "./notes.js";

const lines = (...texts) => utf8(texts.map((text) => `${text}\n`).join(""));

// Keys are 32 bytes, all else is in hexadecimal digits.
export const commitStatement = (event, logKey, entries) =>
  lines("datacollect-commit/2", event, publicText(logKey), ...entries);

// `ticket`: its number, zeros without one.
export const pushStatement = (event, bistroKey, entry, sha256, nBytes, ticket) =>
  lines("datacollect-push/2", event, publicText(bistroKey), entry, sha256, nBytes, ticket);

export const giveUpStatement = (event, bistroKey, upload) =>
  lines("datacollect-give-up/2", event, publicText(bistroKey), upload);

export const handInStatement = (event, salt, owner) =>
  lines("datacollect-hand-in/2", event, salt, owner);

// The public half of a key, by its seed.
export const publicOf = (seed) => hex(ed25519.getPublicKey(unhex(seed)));

// The signature of whoever has the seed: 64 bytes.
export const sign = (seed, statement) => ed25519.sign(statement, unhex(seed));

export const signText = (seed, statement) => base64.encode(sign(seed, statement));
