// Bytes, texts and the ways in which files write them.
import { base64, base64urlnopad } from "@scure/base";
import { bytesToHex, concatBytes, hexToBytes } from "@noble/hashes/utils.js";

export { base64, base64urlnopad, concatBytes as joined, bytesToHex as hex };

const encoder = new TextEncoder();

export const utf8 = (text) => encoder.encode(text);

export const textOf = (bytes) =>
  new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);

export function unhex(text, nBytes = 32) {
  if (typeof text !== "string" || !/^[0-9a-f]*$/.test(text) || text.length !== 2 * nBytes) {
    throw new Error(`must be ${2 * nBytes} lowercase hexadecimal digits`);
  }
  return hexToBytes(text);
}

export const randomHex = (nBytes) => bytesToHex(crypto.getRandomValues(new Uint8Array(nBytes)));

export function bigEndian(number, nBytes) {
  const bytes = new Uint8Array(nBytes);
  for (let i = nBytes - 1; i >= 0; i--) {
    bytes[i] = number % 256;
    number = Math.floor(number / 256);
  }
  return bytes;
}

export function isEqual(one, other) {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

// JSON with ASCII alone, as Python writes it: a `.keep` has one way to say a thing.
export const asciiJson = (tree) =>
  JSON.stringify(tree).replace(
    /[\u007f-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
