// Files that somebody has chosen, or dropped, and not yet handed in: a list in which each can be removed.
import { nameFaults } from "./files.js";

// So many rows are shown: browsers take seconds for thousands.
const MOST_ROWS = 200;

export class Choosing {
  #files = [];

  // `field`: for files; `list`: where the rows go; `changed` is called when a file comes or goes.
  constructor(field, list, changed) {
    this.field = field;
    this.list = list;
    this.changed = changed;
    this.clear();
  }

  // Names and blobs, in one order whatever was chosen first: the same files make the same content.
  get files() {
    return [...this.#files].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  clear() {
    this.#files = [];
    this.field.value = "";
    this.changed();
  }

  // Takes out what was handed in: what was chosen meanwhile stays.
  remove(files) {
    const blobs = new Set(files.map(({ blob }) => blob));
    this.#files = this.#files.filter(({ blob }) => !blobs.has(blob));
    this.#show();
  }

  // Adds files. One that is there already, with all that is known of it, stays once.
  add(files) {
    const idOf = ({ name, blob }) => [name, blob.size, blob.lastModified].join("\n");
    const known = new Set(this.#files.map(idOf));
    for (const file of files) {
      if (!known.has(idOf(file))) this.#files.push(file);
      known.add(idOf(file));
    }
    this.#show();
  }

  // Where an event takes one file another one takes its place.
  put(files) {
    this.#files = [];
    this.add(files);
  }

  #show() {
    // What the browser itself says of the field is to be so, too.
    const shown = new DataTransfer();
    if (this.#files.length <= MOST_ROWS) for (const { blob } of this.#files) shown.items.add(blob);
    this.field.files = shown.files;
    this.changed();
  }

  // What keeps files from being handed in, by the key of a text for each of them.
  faults() {
    const { files } = this;
    // A single one may have any name.
    return files.length > 1 ? nameFaults(files.map(({ name }) => name)) : files.map(() => undefined);
  }

  // Those with a fault stand first.
  draw(texts) {
    const faults = this.faults();
    const rows = this.files.map((file, i) => ({ file, fault: faults[i] }));
    rows.sort((a, b) => Boolean(b.fault) - Boolean(a.fault));
    const nMore = rows.length - MOST_ROWS;
    const made = rows.slice(0, MOST_ROWS).map((row) => this.#row(row, texts));
    if (nMore > 0) made.push(element("li", { textContent: texts.say("more", { n: nMore }) }));
    this.list.replaceChildren(...made);
  }

  #row({ file, fault }, texts) {
    const { name, blob } = file;
    const said = fault ?? (blob.size ? "file_ready" : "file_empty");
    const remove = element("button", { type: "button", textContent: texts.say("remove") });
    remove.setAttribute("aria-label", texts.say("remove_file", { name }));
    remove.addEventListener("click", () => {
      const at = [...this.list.children].indexOf(row);
      this.remove([file]);
      // Whoever has no mouse goes on from there.
      (this.list.children[at] ?? this.list.lastChild)?.querySelector("button")?.focus();
      if (!this.#files.length) this.field.focus();
    });
    const row = fileRow(name, blob.size, texts, said, remove, fault && "error");
    return row;
  }
}

export const element = (tag, more) => Object.assign(document.createElement(tag), more);

// A file's row: its name and size, how it is (the key of a text), and what people can do with it.
export function fileRow(name, nBytes, texts, said, button, className = "hint") {
  const about = element("p", {});
  const file = element("span", { textContent: `${name}, ${texts.bytes(nBytes)}`, className: "file" });
  about.append(file, " ", element("span", { textContent: texts.say(said), className }));
  const row = element("li", {});
  row.append(about, ...(button ? [button] : []));
  return row;
}

// What a field for files, or for a folder, has.
export const chosenIn = ({ files }) =>
  [...files].map((blob) => ({ name: blob.webkitRelativePath || blob.name, blob }));

// What was dropped, folders with all that lies in them. Begins while the event is dispatched, as it must.
export async function dropped({ files, items }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.());
  if (!entries.some((entry) => entry?.isDirectory)) return chosenIn({ files });
  return (await Promise.all(entries.filter(Boolean).map(within))).flat();
}

async function within(entry) {
  if (entry.isFile) {
    const name = entry.fullPath.slice(1);
    const blob = await new Promise((resolve, reject) => {
      entry.file(resolve, () => reject(Object.assign(new Error("is not read"), { file: name })));
    });
    return [{ name, blob }];
  }
  const reader = entry.createReader();
  const found = [];
  // Browsers give a hundred at a time.
  for (let some; (some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject))).length; ) {
    found.push(...some);
  }
  const files = [];
  for (const each of found) files.push(...(await within(each)));
  return files;
}
