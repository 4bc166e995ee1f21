// What this browser keeps: secrets and ciphertexts, on the disk before anything is committed.
let opened;

function database(event) {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(`datacollect-${event}`, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("items", { keyPath: "id" });
      request.result.createObjectStore("parts");
      request.result.createObjectStore("said");
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

export class Store {
  constructor(event) {
    this.event = event;
  }

  // Does something with stores; what was written is on the disk when this has returned.
  async #with(names, mode, act) {
    const found = await database(this.event);
    return new Promise((resolve, reject) => {
      const transaction = found.transaction(names, mode, { durability: "strict" });
      let request;
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = () => reject(transaction.error ?? new Error("nothing was kept"));
      request = act(...names.map((name) => transaction.objectStore(name)));
    });
  }

  items = () => this.#with(["items"], "readonly", (items) => items.getAll());
  item = (id) => this.#with(["items"], "readonly", (items) => items.get(id));
  put = (item) => this.#with(["items"], "readwrite", (items) => items.put(item));

  // Of an item that was removed nothing is kept again; undefined: it was.
  change = (item) =>
    this.#with(["items"], "readwrite", (items) => {
      const found = items.get(item.id);
      found.onsuccess = () => found.result && items.put(item);
      return found;
    });

  said = (name) => this.#with(["said"], "readonly", (said) => said.get(name));
  unsay = (name) => this.#with(["said"], "readwrite", (said) => said.delete(name));
  say = (name, value) => this.#with(["said"], "readwrite", (said) => said.put(value, name));

  putPart = (id, n, blob) =>
    this.#with(["parts"], "readwrite", (parts) => parts.put(blob, [id, n]));

  dropParts = (id) =>
    this.#with(["parts"], "readwrite", (parts) => parts.delete(IDBKeyRange.bound([id], [id, []])));

  drop = (id) =>
    this.#with(["items", "parts"], "readwrite", (items, parts) => {
      items.delete(id);
      return parts.delete(IDBKeyRange.bound([id], [id, []]));
    });

  // The ciphertext; null where not all of it is there any more.
  async ciphertext(item) {
    const key = IDBKeyRange.bound([item.id], [item.id, []]);
    const parts = await this.#with(["parts"], "readonly", (found) => found.getAll(key));
    const blob = new Blob(parts);
    return blob.size === (item.anew ?? item).size ? blob : null;
  }
}
