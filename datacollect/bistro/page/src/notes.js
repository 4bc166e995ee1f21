// Signed notes, keys, checkpoints and their cosignatures (c2sp.org, 2025), and signed tokens.
import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { base64, base64urlnopad, isEqual, joined, textOf, utf8 } from "./bytes.js";

export const OF_NOTE = 1;
export const OF_WITNESS = 4;
const KEY_PREFIX = "ed25519:";
const TIME_STOP = 2 ** 34;
const MOST_SIGNATURES = 64;

export function isSigned(message, signature, key) {
  try {
    return ed25519.verify(signature, message, key, { zip215: false });
  } catch {
    return false;
  }
}

export function publicKey(text) {
  if (!text.startsWith(KEY_PREFIX)) throw new Error("a public key begins with ed25519:");
  return base64.decode(text.slice(KEY_PREFIX.length));
}

export const publicText = (key) => `${KEY_PREFIX}${base64.encode(key)}`;

// A key with its name and the kind of signatures that count.
export function verifierKey(name, key, kind) {
  const id = sha256(joined(utf8(`${name}\n`), Uint8Array.of(kind), key)).slice(0, 4);
  return { name, key, id };
}

export function readVerifierKey(text, kind) {
  // Base64 has plus signs, too.
  const [, name, material] = /^([^+]+)\+[0-9a-f]{8}\+(.*)$/.exec(text) ?? [];
  const raw = base64.decode(material ?? "");
  if (raw.length !== 33 || raw[0] !== kind) throw new Error(`${name}: is no key of that kind`);
  return verifierKey(name, raw.slice(1), kind);
}

export function readNote(bytes) {
  const text = textOf(bytes);
  const gap = text.lastIndexOf("\n\n");
  const lines = text.slice(gap + 2).split("\n");
  if (gap < 0 || lines.pop() !== "" || lines.length > MOST_SIGNATURES || /[\0-\t\v-\x1f]/.test(text)) {
    throw new Error("is no signed note");
  }
  return { text: text.slice(0, gap + 1), signatures: lines.map(readSignature) };
}

function readSignature(line) {
  const found = /^— ([^\s+]{1,255}) ([A-Za-z0-9+/]+={0,2})$/.exec(line);
  if (!found) throw new Error("a line below a note is no signature");
  const raw = base64.decode(found[2]);
  return { name: found[1], id: raw.slice(0, 4), signature: raw.slice(4) };
}

const isOf = (line, key) => line.name === key.name && isEqual(line.id, key.id);

// Whether a key has signed the note's text, and no line in its name is forged.
export function isBy(note, key) {
  const lines = note.signatures.filter((line) => isOf(line, key));
  const message = utf8(note.text);
  return lines.length > 0 && lines.every((line) => isSigned(message, line.signature, key.key));
}

// When each witness has signed a note, its earliest time where it did twice.
export function cosignedTimes(note, witnesses) {
  const times = new Map();
  for (const witness of witnesses) {
    for (const line of note.signatures) {
      const time = timeOf(line, note.text, witness);
      const name = base64.encode(witness.key);
      if (time !== null) times.set(name, Math.min(time, times.get(name) ?? time));
    }
  }
  return [...times.values()];
}

function timeOf(line, text, witness) {
  if (!isOf(line, witness) || line.signature.length !== 8 + 64) return null;
  const time = Number(new DataView(line.signature.buffer, line.signature.byteOffset).getBigUint64(0));
  const message = utf8(`cosignature/v1\ntime ${time}\n${text}`);
  const isGood = time < TIME_STOP && isSigned(message, line.signature.slice(8), witness.key);
  return isGood ? time : null;
}

export function readCheckpoint(bytes) {
  const note = readNote(bytes);
  const lines = note.text.split("\n");
  const size = whole(lines[1]);
  const root = base64.decode(lines[2] ?? "");
  if (lines.length !== 4 || root.length !== 32 || !lines[0]) throw new Error("is no checkpoint");
  return { origin: lines[0], size, root, note };
}

export function whole(text) {
  const number = /^(0|[1-9][0-9]{0,18})$/.test(text ?? "") ? Number(text) : NaN;
  if (!Number.isSafeInteger(number)) throw new Error(`${text} is no whole number`);
  return number;
}

// PASETO v4.public: the payload of a token, where the key has signed it for this purpose.
export function tokenPayload(token, key, assertion) {
  const { payload, signature, header } = partsOf(token);
  const pieces = [utf8(header), payload, new Uint8Array(0), utf8(assertion)];
  const message = joined(...[littleEndian(4)].concat(pieces.flatMap((p) => [littleEndian(p.length), p])));
  if (!isSigned(message, signature, key)) throw new Error("its signature is not that key's");
  return JSON.parse(textOf(payload));
}

export const unverifiedPayload = (token) => JSON.parse(textOf(partsOf(token).payload));

export const joinedToken = (payload, signature) => `v4.public.${base64urlnopad.encode(joined(payload, signature))}`;

function partsOf(token) {
  const header = "v4.public.";
  const body = token.slice(header.length);
  if (!token.startsWith(header) || token.length > 8192) throw new Error("is no token");
  const signed = base64urlnopad.decode(body);
  return { payload: signed.slice(0, -64), signature: signed.slice(-64), header };
}

function littleEndian(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number), true);
  return bytes;
}
