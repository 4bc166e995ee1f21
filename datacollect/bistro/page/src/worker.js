// The worker: hashes and seals, so that the page stays alive.
import { digestOf, seal } from "./sealing.js";
import { Store } from "./store.js";

async function answer({ number, seal: order, digest }) {
  if (digest) return digestOf(digest.blob, digest.inner);
  const store = new Store(order.event);
  await store.dropParts(order.id);
  const keep = (n, parts) => store.putPart(order.id, n, new Blob(parts));
  const say = (nRead) => postMessage({ number, nRead });
  return seal(order.file, order.inner, order.recipients, keep, say);
}

export function work() {
  addEventListener("message", async ({ data }) => {
    const { number } = data;
    try {
      postMessage({ number, done: await answer(data) });
    } catch (error) {
      const { name, message } = error;
      postMessage({ number, failed: { name, message } });
    }
  });
}
