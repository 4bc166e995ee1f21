// The worker: hashes and seals, so that the page stays alive.
import { digestOf, seal } from "./sealing.js";
import { Store } from "./store.js";

async function answer({ seal: order, digest }) {
  if (digest) return digestOf(digest.blob, digest.inner);
  const store = new Store(order.event);
  await store.dropParts(order.id);
  const keep = (n, parts) => store.putPart(order.id, n, new Blob(parts));
  const say = (nRead) => postMessage({ nRead });
  return seal(order.file, order.inner, order.recipients, keep, say);
}

export function work() {
  addEventListener("message", async ({ data }) => {
    try {
      postMessage({ done: await answer(data) });
    } catch (error) {
      postMessage({ failed: { name: error.name, message: error.message } });
    }
  });
}
