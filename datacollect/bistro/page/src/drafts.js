// Which of several files counts, as far as this browser knows: what was handed in elsewhere by the same
// ticket, and what never arrives, the destination alone can see.

const FINAL = ["superseded", "refused"];
const DOES_NOT_OPEN = "does not open";

// Whether the destination has said that it does not count.
export const isOut = ({ verdict }) => FINAL.includes(verdict?.word) && verdict.why !== DOES_NOT_OPEN;

// The item that stands in each one's place, by its id; null for the one that counts. Items that are of
// no other's ticket, or of which no time is proved, are not among them.
export function places(items, standingOf, event) {
  const places = new Map();
  for (const ticket of new Set(items.map((item) => item.ticket).filter(Boolean))) {
    const proved = items
      .filter((item) => item.ticket === ticket)
      .map((item) => ({ item, ...standingOf(item) }))
      .filter(({ time, isLate }) => time !== undefined && !isLate)
      .sort((a, b) => a.time - b.time || (a.entry < b.entry ? -1 : 1))
      .slice(0, event.mostDrafts)
      .map(({ item }) => item);
    const others = proved.filter((item) => !isOut(item));
    // The destination has said of one that it counts again, whatever came later.
    const counting = others.find(({ verdict }) => verdict?.word === "collected" && verdict.why)
      ?? others.at(event.counts === "first" ? 0 : -1);
    for (const item of proved) {
      places.set(item.id, event.counts === "all" || item === counting ? null : (counting ?? null));
    }
  }
  return places;
}
