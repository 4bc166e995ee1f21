// The worker: hashes and seals, so that the page stays alive.
import { digestOf, seal } from "./sealing.js";
import { Store } from "./store.js";

const BLOCK_BYTES = 4 * 2 ** 20;

// How many bytes the browser keeps, of as many as are wanted; they are gone again afterwards.
async function fitting({ id, event, nBytes }) {
  const store = new Store(event);
  const block = new Uint8Array(BLOCK_BYTES);
  let nKept = 0;
  try {
    for (let n = 0; nKept < nBytes; n++) {
      // Each one a blob of its own: one that is kept twice takes its room once in some browsers.
      const blob = new Blob([block.subarray(0, Math.min(BLOCK_BYTES, nBytes - nKept))]);
      await store.putPart(id, n, blob);
      nKept += blob.size;
    }
  } catch {
    // So much, and no more.
  }
  await store.dropParts(id);
  return nKept;
}

async function answer({ number, seal: order, digest, room }) {
  if (digest) return digestOf(digest);
  if (room) return fitting(room);
  const store = new Store(order.event);
  await store.dropParts(order.id);
  const keep = (n, parts) => store.putPart(order.id, n, new Blob(parts));
  const say = (nRead) => postMessage({ number, nRead });
  return seal(order.files, order.inner, order.recipients, keep, say);
}

export function work() {
  addEventListener("message", async ({ data }) => {
    const { number } = data;
    try {
      postMessage({ number, done: await answer(data) });
    } catch (error) {
      const { name, message, file } = error;
      postMessage({ number, failed: { name, message, file } });
    }
  });
}
