// A sealed file on its way to a bistro, by tus 1.0: from where an interruption has left it.
import { Upload } from "tus-js-client";
import { sha256 } from "@noble/hashes/sha2.js";
import { hex, joined, unhex, utf8 } from "./bytes.js";
import { entryOf } from "./commitment.js";
import { provedTime } from "./proofs.js";
import { holderOf } from "./receipt.js";

const RETRY_MS = [0, 1000, 2000, 4000, 8000];
// A bistro that takes no byte and says nothing for so long is left for the next one.
const STALL_MS = 60_000;
// So much goes with the request that begins: a refusal of more would come too late.
const TOGETHER_BYTES = 2 ** 20;

// All bistros, in the order in which an entry goes to them where no table of loads is known.
export function byRendezvous(entry, bistros) {
  const keys = new Map(bistros.map((b) => [b, hex(sha256(joined(unhex(entry), utf8(b.name))))]));
  return [...bistros].sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : 1));
}

function metadataOf(item, event) {
  const entry = unhex(entryOf(item));
  const timeOf = (proof) => provedTime(proof, entry, event).time ?? Infinity;
  const commitment = {
    salt: item.salt,
    size: item.size,
    sha256: item.ciphertext_sha256,
    content_p: item.content_p,
  };
  return {
    commitment: JSON.stringify(commitment),
    proof: item.receipt.proofs.reduce((a, b) => (timeOf(b) < timeOf(a) ? b : a)),
    ...(item.ticket ? { ticket: item.ticket } : {}),
    ...(item.anew ? { sealed_anew: "1" } : {}),
  };
}

// Pushes to one bistro; resolves with its receipt, or throws in words why there is none.
function toOne(bistro, item, ciphertext, event, save, progressed) {
  const url = `${bistro.url}/tus/`;
  let watch;
  const pushed = new Promise((resolve, reject) => {
    let token = null;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => {
        upload.abort();
        reject(new Error("does not answer"));
      }, STALL_MS);
    };
    const upload = new Upload(ciphertext, {
      endpoint: url,
      uploadUrl: item.push?.url.startsWith(url) ? item.push.url : null,
      metadata: metadataOf(item, event),
      uploadDataDuringCreation: ciphertext.size <= TOGETHER_BYTES,
      retryDelays: RETRY_MS,
      storeFingerprintForResuming: false,
      onProgress: (sent) => {
        alive();
        progressed(bistro.name, sent / Math.max(ciphertext.size, 1));
      },
      onUploadUrlAvailable: () => {
        item.push = { url: upload.url };
        save(item).catch(reject);
      },
      onShouldRetry: ({ originalResponse }) => {
        const status = originalResponse?.getStatus() ?? 0;
        return status < 400 || status === 409 || status === 423 || (status >= 500 && status !== 507);
      },
      onAfterResponse: (_, response) => {
        alive();
        token = response.getHeader("Datacollect-Receipt") ?? token;
      },
      onSuccess: () => (token ? resolve(token) : reject(new Error("has all and signs nothing"))),
      onError: ({ originalResponse, message }) => {
        const body = originalResponse?.getBody();
        reject(new Error(body ? whyOf(body) : originalResponse ? message : ""));
      },
    });
    alive();
    upload.start();
  });
  return pushed.finally(() => clearTimeout(watch));
}

function whyOf(body) {
  try {
    return JSON.parse(body).why;
  } catch {
    return body.slice(0, 200);
  }
}

// Pushes until a bistro's receipt counts; false where none takes it now, `item.troubles` says why.
export async function push(item, ciphertext, event, save, progressed) {
  const holder = () => holderOf(item.receipt, item, event);
  const order = byRendezvous(entryOf(item), event.bistros);
  // The one that has some of it first.
  const begun = order.filter((bistro) => item.push?.url.startsWith(`${bistro.url}/`));
  item.troubles = {};
  for (const bistro of [...begun, ...order.filter((each) => !begun.includes(each))]) {
    if (holder()) break;
    try {
      const token = await toOne(bistro, item, ciphertext, event, save, progressed);
      item.receipt.bistro_receipts.push(token);
      if (holder()?.name !== bistro.name) {
        item.receipt.bistro_receipts.pop();
        throw new Error("its receipt does not count");
      }
    } catch (error) {
      item.troubles[bistro.name] = { status: null, words: error.message };
    }
    await save(item);
  }
  return Boolean(holder());
}
