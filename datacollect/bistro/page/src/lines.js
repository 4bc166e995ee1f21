// What is said of one item: what is proved, in one line, and whether that is good or bad.

// By the key of the line: the key of what people may do, where it is not the line's own; and the state,
// which is the title of its card.
const STATES = {
  room: "not_yet",
  sealing: "not_yet",
  asking: "not_yet",
  acknowledged: "not_yet",
  ready: "not_yet",
  sending: "not_yet",
  held: "held",
  held_last: "done",
  proved_only: "done",
  collected: "done",
  replaced: "replaced",
  superseded: "replaced",
  cancelled: "cancelled",
  cancelled_early: "cancelled",
};
// What a hand-in is called: by its file's name, or by how many there are.
export const nameOf = ({ name, files }, texts) =>
  files ? texts.say("n_files", { n: files.length, name: files[0].name }) : name;

// How far each file of a hand-in is, by the key of the line: the key of a text.
const FILES = {
  room: "waiting",
  sealing: "waiting",
  asking: "sealed",
  acknowledged: "sealed",
  ready: "proved",
  sending: "proved",
  proved_only: "proved",
  held: "held",
  held_last: "held",
  collected: "collected",
};
export const fileState = (key) => `file_${FILES[key] ?? "off"}`;

const TO_DO = { sending: "ready", unopened: "lost", replaced: "superseded" };

// `found`: `{ key, values, state, toDo }`, all of them keys of texts but the values. `other`: what stands
// in the item's place, as far as is known here.
export function lineOf(item, standing, progress, other, event, texts) {
  const [key, values = {}] = keyOf(item, standing, progress, other, event, texts);
  return { key, values, state: STATES[key] ?? "not_done", toDo: TO_DO[key] ?? key };
}

function keyOf(item, standing, progress, other, event, texts) {
  const { time, word, holder, collected, nLogs, isLate } = standing;
  if (progress?.what === "stopped") return ["stopped", { words: progress.words }];
  if (progress?.what === "room") return ["room"];
  if (item.state === "sealing" || progress?.what === "sealing") return ["sealing"];
  if (time === undefined && event.cancelled) return ["cancelled_early"];
  if (item.state === "interrupted") return ["interrupted"];
  if (time === undefined) {
    if (item.state === "refused") return ["refused"];
    return word ? ["acknowledged", { word: texts.instant(word.time_s) }] : ["asking"];
  }
  const values = {
    time: texts.instant(time),
    logs: nLogs === 1 ? texts.say("one_log") : texts.say("logs", { n: nLogs }),
    k: event.quorum,
    n: event.witnesses.length,
    where: holder?.name ?? progress?.where,
  };
  if (isLate) return ["late", values];
  if (item.verdict?.isByStranger) return ["superseded_by_stranger", values];
  if (item.verdict?.word === "superseded") return ["superseded", values];
  if (item.verdict?.word === "refused" && !item.anew) {
    if (item.state === "lost") return [event.cancelled ? "cancelled" : "unopened", values];
    return ["refused_in_the_end", { ...values, why: texts.say(`why_${item.verdict.why.replaceAll(" ", "_")}`) }];
  }
  if (other) {
    return ["replaced", { ...values, other: nameOf(other, texts), at: texts.instant(other.created / 1000) }];
  }
  if (collected !== undefined) return ["collected", { ...values, at: texts.instant(collected) }];
  if (event.cancelled) return ["cancelled", values];
  if (holder) return [event.verdicts?.url ? "held" : "held_last", values];
  if (item.state === "lost") return ["lost", values];
  if (event.bistros.length === 0) return ["proved_only", values];
  return [progress?.what === "sending" ? "sending" : "ready", values];
}
