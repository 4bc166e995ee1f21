// Until a time is proved: services are asked in turn, the next one where one refuses, is silent, or
// has acknowledged and proves nothing. The entry is the same everywhere.
import { unhex } from "./bytes.js";
import { entryOf } from "./commitment.js";
import { latest } from "./event.js";
import { provedTime } from "./proofs.js";
import { isAcknowledged, receiptTime } from "./receipt.js";
import { commit, proofOf, wordsOf } from "./services.js";
import { backoff, sleep } from "./waiting.js";

// How long a service is asked alone; and one that has acknowledged.
const IN_TURN_S = 3;
const TRUSTED_S = 5;
const PROOF_AGAIN_S = 0.5;
// How long a late entry's proof is asked for again: one more witness may make it one in time.
const LATE_S = 10;
// Of one service's words the first ones and the last are kept: a few prove that it breaks them.
const MOST_WORDS = 4;

function keepWord(words, word) {
  if (words.some((each) => each.signature === word.signature)) return;
  const own = words.filter((each) => each.log === word.log);
  if (own.length >= MOST_WORDS) words.splice(words.indexOf(own.at(-1)), 1);
  words.push(word);
}

const isLate = (item, event) =>
  (receiptTime(item.receipt, entryOf(item), event) ?? 0) > latest(event);

function shuffled(rows) {
  const keys = new Map(rows.map((row) => [row, crypto.getRandomValues(new Uint32Array(1))[0]]));
  return [...rows].sort((a, b) => keys.get(a) - keys.get(b));
}

// Goes on until a proof counts, or all services have refused for good; true where one counts.
// `save` has the item on the disk; `event()` is the event as amendments have left it by now.
export async function prove(item, event, save) {
  const entry = entryOf(item);
  const isProved = () => receiptTime(item.receipt, entry, event()) !== undefined;
  const ends = new AbortController();
  const { signal } = ends;
  const open = new Set(event().services);
  let broken = null;
  item.troubles = {};

  async function fromOne(service, failed) {
    let isHolder = item.receipt.acknowledgements.some((word) => word.log === service.log.name);
    let lateEnd = Infinity;
    for (let nFailures = 0; !signal.aborted; ) {
      if (performance.now() >= lateEnd) {
        ends.abort();
        return;
      }
      try {
        if (!isHolder) {
          const word = await commit(service, entry, item, signal);
          if (!isAcknowledged(word, entry, event())) throw new Error("its word is not signed by its log");
          keepWord(item.receipt.acknowledgements, word);
          isHolder = true;
          await save(item);
          await sleep(PROOF_AGAIN_S, signal);
        }
        const proof = await proofOf(service.url, entry, signal);
        const found = provedTime(proof, unhex(entry), event());
        if (found.why || found.log !== service.log.name) throw new Error("its proof does not count");
        nFailures = 0;
        if (!item.receipt.proofs.includes(proof)) {
          item.receipt.proofs.push(proof);
          await save(item);
        }
        lateEnd = Math.min(lateEnd, performance.now() + LATE_S * 1000);
        if (!isLate(item, event())) {
          ends.abort();
          return;
        }
        await sleep(1, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error.status === 202) {
          await sleep(PROOF_AGAIN_S, signal);
          continue;
        }
        // It does not hold what it has acknowledged: its word in the receipt is evidence.
        if (error.status === 404) isHolder = false;
        item.troubles[service.url] = { status: error.status ?? null, words: wordsOf(error) };
        await save(item);
        failed();
        if (error.isFinal) {
          open.delete(service);
          return;
        }
        await sleep(error.retryAfter || backoff(nFailures++), signal);
      }
    }
  }

  const done = [];
  for (const service of shuffled(event().services)) {
    if (isProved()) break;
    const hasFailed = new Promise((resolve) => {
      const end = (error) => {
        // Nothing can be kept any more.
        broken ??= error;
        ends.abort();
      };
      done.push(fromOne(service, resolve).catch(end));
    });
    const wait = item.receipt.acknowledgements.length ? TRUSTED_S : IN_TURN_S;
    await Promise.race([hasFailed, sleep(wait, signal), done.at(-1)]);
  }
  await Promise.all(done);
  if (broken) throw broken;
  if (isProved()) item.troubles = {};
  return isProved();
}
