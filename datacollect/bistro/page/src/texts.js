// How a language says and writes things. What people read is in `texts`: a table for each language, the
// same keys in each.
import de from "./texts/de.json" with { type: "json" };
import en from "./texts/en.json" with { type: "json" };
import fr from "./texts/fr.json" with { type: "json" };

const TEXTS = { en, de, fr };
const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

export class Texts {
  // `wanted`: languages, the best ones first, as browsers name them.
  constructor(wanted) {
    const spoken = (each) => each.slice(0, 2).toLowerCase();
    this.language = wanted.map(spoken).find((each) => each in TEXTS) ?? "en";
    // Dates and numbers are written as in the reader's country.
    this.locale = navigator.languages.find((each) => spoken(each) === this.language) ?? this.language;
  }

  // `texts.say(key, values)`.
  say(key, values = {}) {
    return TEXTS[this.language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }

  // An instant by the reader's own zone; with its seconds and the zone's name.
  instant(time) {
    const style = { dateStyle: "medium", timeStyle: "long" };
    return new Intl.DateTimeFormat(this.locale, style).format(time * 1000);
  }

  utc(time) {
    return `${new Date(time * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }

  // A duration, its two largest units.
  duration(seconds) {
    const units = [["days", 86_400], ["hours", 3600], ["minutes", 60], ["seconds", 1]];
    let rest = Math.max(0, Math.floor(seconds));
    const parts = units.map(([key, length]) => {
      const n = Math.floor(rest / length);
      rest %= length;
      return [key, n];
    });
    const first = Math.min(parts.findIndex(([, n]) => n > 0) >>> 0, 3);
    return parts.slice(first, first + 2).map(([key, n]) => this.say(key, { n })).join(" ");
  }

  bytes(n) {
    const i = Math.min(Math.floor(Math.log10(Math.max(n, 1)) / 3), 4);
    const style = { style: "unit", unit: UNITS[i], unitDisplay: i ? "short" : "long", maximumSignificantDigits: 3 };
    return new Intl.NumberFormat(this.locale, style).format(n / 1000 ** i);
  }
}
