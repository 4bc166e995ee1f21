// The event that the page is of, amendments, and tickets.
import { parse } from "smol-toml";
import { sha256 } from "@noble/hashes/sha2.js";
import { base64urlnopad, hex, joined, textOf, unhex, utf8 } from "./bytes.js";
import { OPENED_CONTENT } from "./commitment.js";
import { isBy, joinedToken, OF_NOTE, OF_WITNESS, publicKey, publicText, readNote, readVerifierKey } from "./notes.js";
import { tokenPayload, verifierKey } from "./notes.js";
import { provedTime } from "./proofs.js";
import { publicOf } from "./statements.js";

const FORMAT = "datacollect-event/2";
const TICKET_FORMAT = "datacollect-ticket/2";
const OLDER_TICKET_FORMAT = "datacollect-ticket/1";

const seconds = (date) => date.getTime() / 1000;

const verdictsOf = (table) => ({
  log: readVerifierKey(table.log, OF_NOTE),
  url: table.url?.replace(/\/$/, ""),
});

const bistroOf = (row) => ({ name: row.name, url: row.url.replace(/\/$/, ""), key: publicKey(row.key) });

// `bytes`: all of the event's file; their hash is its id. Who made the page has checked its rules.
export function readEvent(bytes) {
  const tree = parse(textOf(bytes));
  const log = (text) => readVerifierKey(text, OF_NOTE);
  const hasTickets = (tree.admission ?? "tickets") === "tickets";
  return {
    id: hex(sha256(bytes)),
    // In older events whoever hears a ticket can use it: nothing is handed in there.
    isOlder: tree.format !== FORMAT,
    // Whether entries say to their destination of which ticket they are.
    hasMarks: tree.format === FORMAT && hasTickets && Boolean(tree.verdicts),
    name: tree.name,
    timezone: tree.timezone,
    opens: tree.opens ? seconds(tree.opens) : 0,
    deadline: seconds(tree.deadline),
    lag: tree.lag_s ?? 10,
    collectUntil: seconds(tree.collect_until),
    organiser: publicKey(tree.organiser),
    recipients: tree.recipients,
    admission: tree.admission ?? "tickets",
    counts: tree.counts ?? "last",
    neverCame: tree.never_came ?? "another",
    // What headers name, so that a proof shows the file alone; older events say nothing of it.
    content: tree.content === OPENED_CONTENT ? OPENED_CONTENT : undefined,
    // Its keeper is its only witness.
    alone: tree.alone ?? false,
    quorum: tree.quorum,
    mostBytes: tree.limits?.bytes ?? Infinity,
    // So many are handed in together; older events take one.
    mostFiles: tree.limits?.files ?? 1,
    // So many of a ticket may count.
    mostDrafts: tree.limits?.commitments_per_ticket ?? 10,
    services: tree.services.map((row) => ({ url: row.url.replace(/\/$/, ""), log: log(row.log) })),
    witnesses: tree.witnesses.map((row) => readVerifierKey(row.vkey, OF_WITNESS)),
    verdicts: tree.verdicts && verdictsOf(tree.verdicts),
    // `{ why, at }` where the organiser has ended it for good: nothing more is taken, nor collected.
    cancelled: null,
    // Logs of verdicts that others have succeeded, and until when what they proved stands.
    ended: [],
    bistros: (tree.bistros ?? []).map(bistroOf),
    revoked: [],
  };
}

export const latest = (event) => event.deadline + event.lag;

// The event as amendments that a log has published have left it. `rows`: notes and their proofs.
export function amended(event, rows) {
  const signer = verifierKey("organiser", event.organiser, OF_NOTE);
  const seen = new Map();
  let found = event;
  for (const { note, proofs } of rows) {
    const bytes = utf8(note);
    const read = readNote(bytes);
    const isSigned = read.signatures.length === 1 && isBy(read, signer);
    const times = proofs.map((proof) => provedTime(proof, bytes, event).time);
    const time = Math.min(...times.filter((each) => each !== undefined), seen.get(note)?.time ?? Infinity);
    if (!isSigned || time === Infinity) continue;
    const tree = parse(read.text);
    if (tree.format !== "datacollect-amendment/1" || tree.event !== event.id) continue;
    const isNew = !seen.has(note);
    seen.set(note, { tree, time });
    if (!isNew) continue;
    found = {
      ...found,
      deadline: Math.max(found.deadline, tree.deadline ? seconds(tree.deadline) : 0),
      bistros: [...found.bistros, ...(tree.bistros ?? []).map(bistroOf)],
      revoked: [...found.revoked, ...(tree.revoked ?? [])],
    };
  }
  const amendments = [...seen].sort(([a, x], [b, y]) => x.tree.number - y.tree.number || (a < b ? -1 : 1));
  const [, last] = amendments.find(([, { tree }]) => tree.cancelled) ?? [];
  const cancelled = last ? { why: last.tree.cancelled, at: last.time } : null;
  return succeeded({ ...found, cancelled }, event, amendments);
}

// An event whose logs of verdicts have ended one after the other, in the order of their amendments. One
// that it has had, by its name or its key, is passed over: it would prove nothing after its own end.
function succeeded(event, original, amendments) {
  if (!original.verdicts) return event;
  const logs = [...original.services.map(({ log }) => log), original.verdicts.log];
  const names = new Set(logs.map(({ name }) => name));
  const holders = [...logs, ...original.witnesses, ...original.bistros];
  const keys = new Set([original.organiser, ...holders.map(({ key }) => key)].map(hex));
  return amendments.reduce((before, [, { tree, time }]) => {
    const next = tree.verdicts && verdictsOf(tree.verdicts);
    const isNew = next && !names.has(next.log.name) && !keys.has(hex(next.log.key));
    for (const { key } of (tree.bistros ?? []).map(bistroOf)) keys.add(hex(key));
    if (!isNew) return before;
    names.add(next.log.name);
    keys.add(hex(next.log.key));
    const ended = [...before.ended, { log: before.verdicts.log, until: time }];
    return { ...before, verdicts: next, ended };
  }, event);
}

// A ticket's file: its token, which services see, and the seed of its key, which nobody does. What is
// wrong with it is said by a text's key: an error might quote the seed.
export function readTicket(text, event) {
  let tree;
  let claims;
  try {
    tree = parse(text);
    if (tree.format === OLDER_TICKET_FORMAT) return { why: "ticket_older" };
    if (tree.format !== TICKET_FORMAT) return { why: "ticket_none" };
    claims = tokenPayload(tree.token, event.organiser, "datacollect-event-ticket/2");
  } catch {
    return { why: "ticket_none" };
  }
  if (tree.event !== event.id || claims.event !== event.id) return { why: "ticket_other" };
  if (!isKeyOf(tree.seed, claims.key)) return { why: "ticket_damaged" };
  if (event.revoked.includes(hex(sha256(utf8(tree.token))))) return { why: "ticket_revoked" };
  return { token: tree.token, seed: tree.seed, id: claims.id };
}

// The file of the ticket that a link has brought, behind `#t=`: its seed, the organiser's signature and,
// where it is not that of the key, the number. All else that was signed stands in the event's file.
export function linkedTicketText(text, event) {
  const told = base64urlnopad.decode(text);
  if (![96, 112].includes(told.length)) throw new Error("is no ticket");
  const seed = hex(told.slice(0, 32));
  const key = unhex(publicOf(seed));
  const number = told.length > 96 ? told.slice(96) : numberOf(key);
  const claims = { v: 1, event: event.id, id: hex(number), key: publicText(key), exp: event.collectUntil };
  const token = joinedToken(utf8(JSON.stringify(claims)), told.slice(32, 96));
  const values = { format: TICKET_FORMAT, event: event.id, token, seed };
  return Object.entries(values).map(([name, value]) => `${name} = "${value}"\n`).join("");
}

const numberOf = (key) => sha256(joined(utf8("datacollect-ticket-number/1\n"), key)).slice(0, 16);

function isKeyOf(seed, key) {
  try {
    return publicOf(seed) === hex(publicKey(key));
  } catch {
    return false;
  }
}
