// Waits that end early: when somebody gives up, the network is back, or the page is looked at again.

export function sleep(seconds, signal) {
  return new Promise((resolve) => {
    const stops = new AbortController();
    const end = () => {
      clearTimeout(timer);
      stops.abort();
      resolve();
    };
    // What a computer that slept through it would have missed.
    const timer = setTimeout(end, seconds * 1000);
    const options = { signal: stops.signal };
    addEventListener("online", end, options);
    globalThis.document?.addEventListener("visibilitychange", end, options);
    signal?.addEventListener("abort", end, options);
    if (signal?.aborted) end();
  });
}

// Doubles with each failure.
export const backoff = (nFailures) => Math.min(2 ** nFailures, 15);
