// What a bistro takes of what it is sent: whatever it answers, it holds nobody for ever.

// Tries running have to bring so much more, or all.
const LEAST_GAIN_BYTES = 64 * 1024;
// Besides all once, and once more in vain, a bistro is sent so much.
const MORE_BYTES = 64 * 2 ** 20;

export class Gain {
  #most = 0;
  #forgiven = 0;
  #failures = 0;
  #at = 0;
  #sent = 0;

  constructor(size, mostFailures) {
    this.size = size;
    this.mostFailures = mostFailures;
  }

  // All up to there has left, counted from the file's beginning.
  sentUpTo(bytes) {
    this.#sent += Math.max(bytes - this.#at, 0);
    this.#at = bytes;
  }

  // A bistro says that it has so much.
  has(bytes) {
    this.#most = Math.max(this.#most, Math.min(bytes, this.size));
    if (this.#most < this.#forgiven + LEAST_GAIN_BYTES) return;
    this.#forgiven = this.#most;
    this.#failures = 0;
  }

  failed() {
    this.#failures += 1;
  }

  get isOver() {
    return this.#failures >= this.mostFailures || this.#sent > 2 * this.size + MORE_BYTES;
  }
}
