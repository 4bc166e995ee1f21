// A sealed file on its way to a bistro, by tus 1.0: from where an interruption has left it.
import { Upload } from "tus-js-client";
import { sha256 } from "@noble/hashes/sha2.js";
import { hex, joined, unhex, utf8 } from "./bytes.js";
import { entryOf } from "./commitment.js";
import { Gain } from "./gain.js";
import { holderOf } from "./receipt.js";
import { giveUpStatement, signText } from "./statements.js";
import { metadataText } from "./wish.js";

const RETRY_MS = [0, 1000, 2000, 4000, 8000];
// Besides what fails at the server: another offset, somebody else at work, too many requests.
const AGAIN = [409, 423, 429];
// A bistro that takes no byte and says nothing for so long is left for the next one.
const STALL_MS = 60_000;
// So much goes with the request that begins: a refusal of more would come too late.
const TOGETHER_BYTES = 2 ** 20;
// How long a bistro is asked to forget something.
const GIVE_UP_MS = 20_000;

// All bistros, in the order in which an entry goes to them where no table of loads is known.
export function byRendezvous(entry, bistros) {
  const keys = new Map(bistros.map((b) => [b, hex(sha256(joined(unhex(entry), utf8(b.name))))]));
  return [...bistros].sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : 1));
}

// Has a bistro forget an upload, which it does for its owner alone: its room is free again.
async function giveUp(url, item, event) {
  const bistro = event.bistros.find((each) => url.startsWith(`${each.url}/tus/`));
  if (!bistro) return;
  const said = giveUpStatement(event.id, bistro.key, url.slice(`${bistro.url}/tus/`.length));
  const headers = {
    "Tus-Resumable": "1.0.0",
    "Datacollect-Signature": signText(item.owner_seed, said),
  };
  const signal = AbortSignal.timeout(GIVE_UP_MS);
  await fetch(url, { method: "DELETE", headers, signal, credentials: "omit", cache: "no-store" });
}

// Pushes to one bistro; resolves with its receipt, or throws in words why there is none.
function toOne(bistro, item, ciphertext, event, save, progressed) {
  const url = `${bistro.url}/tus/`;
  const metadata = metadataText(item, event, bistro);
  const gain = new Gain(ciphertext.size, RETRY_MS.length);
  let watch;
  const pushed = new Promise((resolve, reject) => {
    let token = null;
    const leave = (words) => {
      upload.abort();
      reject(new Error(words));
    };
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => leave("does not answer"), STALL_MS);
    };
    const upload = new Upload(ciphertext, {
      endpoint: url,
      uploadUrl: item.push?.url.startsWith(url) ? item.push.url : null,
      // Only what begins is to be admitted.
      onBeforeRequest: (request) => {
        if (request.getMethod() === "POST") request.setHeader("Upload-Metadata", metadata);
      },
      uploadDataDuringCreation: ciphertext.size <= TOGETHER_BYTES,
      retryDelays: RETRY_MS,
      storeFingerprintForResuming: false,
      onProgress: (sent) => {
        alive();
        gain.sentUpTo(sent);
        progressed(bistro.name, sent / Math.max(ciphertext.size, 1));
      },
      onUploadUrlAvailable: () => {
        item.push = { url: upload.url };
        save(item).catch((error) => {
          upload.abort();
          reject(error);
        });
      },
      onShouldRetry: ({ originalResponse }) => {
        gain.failed();
        const status = originalResponse?.getStatus() ?? 0;
        const isAgain = AGAIN.includes(status) || (status >= 500 && status !== 507);
        return !gain.isOver && (status < 400 || isAgain);
      },
      onAfterResponse: (request, response) => {
        alive();
        token = response.getHeader("Datacollect-Receipt") ?? token;
        const offset = Number(response.getHeader("Upload-Offset") ?? NaN);
        if (response.getStatus() >= 300 || Number.isNaN(offset)) return;
        gain.has(offset);
        // It was sent all that was left.
        if (request.getMethod() === "PATCH" && offset < ciphertext.size) gain.failed();
        if (gain.isOver) leave("takes less than it is sent");
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
  if (item.given_up) {
    // Where it does not hear that, it forgets it in time.
    await giveUp(item.given_up, item, event).catch(() => null);
    item.given_up = null;
    await save(item);
  }
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
