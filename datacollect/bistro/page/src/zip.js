// A zip file (APPNOTE 6.3) of small texts, without compression: many files in one download.
import { joined, utf8 } from "./bytes.js";

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n % 2 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

const crcOf = (bytes) => ~bytes.reduce((crc, byte) => TABLE[(crc ^ byte) & 255] ^ (crc >>> 8), ~0) >>> 0;

// Numbers of two or four bytes, the least first: `[bytes, number]`.
function fields(...rows) {
  const view = new DataView(new ArrayBuffer(rows.reduce((sum, [n]) => sum + n, 0)));
  let at = 0;
  for (const [n, value] of rows) {
    if (n === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += n;
  }
  return new Uint8Array(view.buffer);
}

// `files`: names and texts, at most 65 535 of them, and less than 4 GB.
export function zipOf(files) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const { name, text } of files) {
    const path = utf8(name);
    const bytes = utf8(text);
    // Names are UTF-8; 1980-01-01; as it is.
    const about = fields(
      [2, 20], [2, 0x800], [2, 0], [2, 0], [2, 0x21], [4, crcOf(bytes)], [4, bytes.length], [4, bytes.length],
      [2, path.length], [2, 0],
    );
    const part = joined(fields([4, 0x04034b50]), about, path, bytes);
    directory.push(joined(fields([4, 0x02014b50], [2, 20]), about, fields([2, 0], [2, 0], [2, 0], [4, 0], [4, at]), path));
    parts.push(part);
    at += part.length;
  }
  const nBytes = directory.reduce((sum, { length }) => sum + length, 0);
  const n = files.length;
  const end = fields([4, 0x06054b50], [2, 0], [2, 0], [2, n], [2, n], [4, nBytes], [4, at], [2, 0]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}
