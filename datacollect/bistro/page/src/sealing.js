// A file sealed as a stream: memory does not grow with it.
import { Encrypter } from "age-encryption";
import { sha256 } from "@noble/hashes/sha2.js";
import { asciiJson, bigEndian, hex, joined, utf8 } from "./bytes.js";
import { contentCode, openedCode } from "./commitment.js";
import { frame } from "./files.js";

// What is kept at once; what is read at once.
const PART_BYTES = 4 * 2 ** 20;
const BLOCK_BYTES = 2 ** 20;

function headOf(inner) {
  const told = utf8(asciiJson(inner));
  return joined(utf8("datacollect-sealed/2\n"), bigEndian(told.length, 4), told);
}

// `files`: names and blobs. `inner`: header, secret, ticket_signature. `keep(n, parts)` has the n-th
// piece kept.
export async function seal(files, inner, recipients, keep, say) {
  const code = contentCode(inner.secret, inner.header);
  const encrypter = new Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  const source = contentOf(files, code, (n) => {
    nRead += n;
  });
  let head = headOf(inner);
  let nRead = 0;
  const plain = new ReadableStream({
    async pull(controller) {
      if (head) {
        controller.enqueue(head);
        head = null;
        return;
      }
      const { done, value } = await source.next();
      if (done) {
        controller.close();
        return;
      }
      controller.enqueue(value);
    },
  });
  const digest = sha256.create();
  let parts = [];
  let nWaiting = 0;
  let nKept = 0;
  let size = 0;
  const flush = async () => {
    if (!nWaiting) return;
    await keep(nKept++, parts);
    parts = [];
    nWaiting = 0;
    say(nRead);
  };
  for await (const block of blocksOf(await encrypter.encrypt(plain))) {
    digest.update(block);
    size += block.length;
    parts.push(block);
    nWaiting += block.length;
    if (nWaiting >= PART_BYTES) await flush();
  }
  await flush();
  const nBytes = files.reduce((sum, { blob }) => sum + blob.size, 0);
  if (nRead !== nBytes) throw new Error("the file changed while it was sealed");
  return {
    size,
    ciphertext_sha256: hex(digest.digest()),
    content_p: hex(code.digest()),
    codes: code.codes,
    n_parts: nKept,
  };
}

// All files one behind the other: of several each begins with its name and its length, which the code is
// told. `read` is told how many bytes of files were read.
async function* contentOf(files, code, read) {
  for (const { name, blob } of files) {
    if (code.begin) {
      code.begin(name);
      yield frame(name, blob.size);
    }
    try {
      for await (const block of bytesOf(blob)) {
        code.update(block);
        read(block.length);
        yield block;
      }
    } catch (error) {
      // Which one it was.
      throw Object.assign(error, { file: name });
    }
  }
}

// Not by `stream()`: where the file has gone or was changed, that does not say so.
async function* bytesOf(blob) {
  // What has gone is as if it were empty, but for who reads it as a whole.
  if (blob.size === 0) await blob.arrayBuffer();
  for (let at = 0; at < blob.size; at += BLOCK_BYTES) {
    yield new Uint8Array(await blob.slice(at, at + BLOCK_BYTES).arrayBuffer());
  }
}

async function* blocksOf(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

// The hash of some bytes, of one file or several; or the code of a content, given what is sealed beside
// them, or what opens it.
export async function digestOf({ files, inner, opening }) {
  const digest = opening
    ? openedCode(opening)
    : inner ? contentCode(inner.secret, inner.header) : sha256.create();
  for await (const _ of contentOf(files, digest, () => {}));
  return hex(digest.digest());
}
