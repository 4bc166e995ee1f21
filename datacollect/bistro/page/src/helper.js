// The page's side of its worker, which is there from the beginning: offline none could be begun.

export class Helper {
  #waiting = new Map();
  #n = 0;

  constructor(worker) {
    this.worker = worker;
    worker.onmessage = ({ data }) => this.#take(data);
    worker.onerror = (event) => this.#fail(event.message || "the worker does not start");
  }

  // Has the worker do something; `progressed` is told how many bytes were read.
  ask(order, progressed = () => {}) {
    return new Promise((resolve, reject) => {
      this.#waiting.set(++this.#n, { resolve, reject, progressed });
      this.worker.postMessage({ ...order, number: this.#n });
    });
  }

  #take({ number, nRead, done, failed }) {
    const { resolve, reject, progressed } = this.#waiting.get(number);
    if (nRead !== undefined) {
      progressed(nRead);
      return;
    }
    this.#waiting.delete(number);
    if (failed) reject(Object.assign(new Error(failed.message), failed));
    else resolve(done);
  }

  #fail(words) {
    for (const { reject } of this.#waiting.values()) reject(new Error(words));
    this.#waiting.clear();
  }
}
