// Contents of several files: one list that an entry commits to, each file by a code of its own, so that
// one is shown and tells nothing of the others but how many there are.
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bigEndian, hex, joined, unhex, utf8 } from "./bytes.js";
import { keyOf, ticketCode } from "./keys.js";
import { leaf, levelsOf, pathOf, pathRoot } from "./tree.js";

export const FILES_CONTENT = "datacollect-content/3";
const FILES_HEADER = `{"content":"${FILES_CONTENT}",`;
export const MOST_FILES = 10_000;
// With room for what its proof is called.
const PROOF = ".proof";
const MOST_PART_BYTES = 255 - PROOF.length;
const MOST_PARTS = 16;
// Of all names together.
const MOST_FOLDERS = 10_000;

export const isOfSeveral = (header) => header.startsWith(FILES_HEADER);

// Keys in order, as they are sealed and committed to.
export const filesHeaderText = (event, n, ticket) =>
  JSON.stringify({ content: FILES_CONTENT, event, files: n, ...(ticket && { ticket }) });

// What stands before a file in what is sealed.
export function frame(name, nBytes) {
  const bytes = utf8(name);
  return joined(bigEndian(bytes.length, 4), bytes, bigEndian(nBytes, 8));
}

// As many bytes as all frames have.
export const frameBytes = (files) =>
  files.length > 1 ? files.reduce((sum, { name }) => sum + 12 + utf8(name).length, 0) : 0;

// The code of several files' content: told of each one's name, then of its bytes.
export class FilesCode {
  #codes = [];

  constructor(secret, header) {
    Object.assign(this, { secret, header });
  }

  begin(name) {
    const i = this.#codes.length;
    this.#codes.push(fileCode(keyOf(this.secret, `file ${i}`), nameCode(this.secret, i, name)));
  }

  update(bytes) {
    this.#codes.at(-1).update(bytes);
  }

  // What an entry says of all of them; once.
  digest() {
    // Kept for who has sealed: each one's proof is made of all.
    this.codes = this.#codes.map((code) => hex(code.digest()));
    const { event, ticket = "" } = JSON.parse(this.header);
    const root = levelsOf(leavesOf(this.codes)).at(-1)[0];
    return listDigest(event, hex(ticketCode(this.secret, ticket)), this.codes.length, root);
  }
}

const leavesOf = (codes) => codes.map((code) => leaf(unhex(code)));

const nameCode = (secret, i, name) => hmac(sha256, keyOf(secret, `name ${i}`), utf8(name));

function fileCode(key, name) {
  return hmac.create(sha256, key).update(joined(utf8("datacollect-file/3\n"), name));
}

function listDigest(event, ticket, count, root) {
  const said = joined(unhex(event), unhex(ticket), bigEndian(count, 4), root);
  return sha256(joined(utf8("datacollect-content/3\n"), said));
}

// What opens the commitment to each of several files, and tells neither name nor ticket. `files`: names
// and codes of all, in their order.
export function fileOpenings({ secret, header, files }) {
  const { event, ticket = "" } = JSON.parse(header);
  const levels = levelsOf(leavesOf(files.map(({ code }) => code)));
  const ofTicket = hex(ticketCode(secret, ticket));
  return (index) => ({
    event,
    key: hex(keyOf(secret, `file ${index}`)),
    name: hex(nameCode(secret, index, files[index].name)),
    ticket: ofTicket,
    index,
    count: files.length,
    path: pathOf(levels, index).map(hex),
  });
}

// As a content's code, by what is shown of one of its files: to be updated with that file's bytes.
export function openedFileCode({ event, key, name, ticket, index, count, path }) {
  const code = fileCode(unhex(key), unhex(name));
  const digest = () => {
    const root = pathRoot(leaf(code.digest()), index, count, path.map((each) => unhex(each)));
    // Nothing, where no list of that many has such a path.
    return root ? listDigest(event, ticket, count, root) : new Uint8Array();
  };
  const update = (bytes) => {
    code.update(bytes);
    return made;
  };
  const made = { update, digest };
  return made;
}

// Why a name may not be that of one of several files, by the key of a text; undefined: it may.
export function nameFault(name) {
  const parts = name.split("/");
  const isLong = parts.some((part) => utf8(part).length > MOST_PART_BYTES);
  if (isLong || parts.length > MOST_PARTS || utf8(name).length > 1024) return "fault_long";
  if (/[\0-\x1f\x7f\\]/.test(name) || parts.some((part) => ["", ".", ".."].includes(part))) return "fault_odd";
}

// The same for all of them: no two are the same, none is a folder of another, nor is its proof, also for
// systems that tell neither case nor how letters are composed; and they make no more folders than may be.
export function nameFaults(names) {
  const folded = names.map((name) => name.normalize("NFC").toLowerCase());
  const seen = new Map();
  const folders = new Set();
  const all = new Set();
  for (const name of folded) {
    seen.set(name, (seen.get(name) ?? 0) + 1);
    addFolders(folders, name);
  }
  return names.map((name, i) => {
    addFolders(all, name);
    const other = folded[i];
    if (nameFault(name)) return nameFault(name);
    if (seen.get(other) > 1 || folders.has(other)) return "fault_twice";
    if (folders.has(other + PROOF)) return "fault_proof";
    if (all.size > MOST_FOLDERS) return "fault_folders";
  });
}

function addFolders(folders, name) {
  for (let at = name.indexOf("/"); at > 0; at = name.indexOf("/", at + 1)) folders.add(name.slice(0, at));
}
