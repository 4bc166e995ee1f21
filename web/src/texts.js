// All that people read, by language: one table, the same keys in each.
export const TEXTS = {
  en: {
    language: "Language",
    deadline: "Hand in until",
    left: "{left} left, by the services' clock",
    left_unknown: "{left} left, by the clock of this device, which nobody has checked",
    opens: "Opens at {at}",
    over: "The deadline has passed.",
    clock_wrong: "The clock of this device is wrong by {by}. The services' clock counts.",
    days: "{n} d",
    hours: "{n} h",
    minutes: "{n} min",
    seconds: "{n} s",
    hand_in_title: "Hand in a file",
    file: "Your file",
    drop: "or drop it here",
    ticket: "Your ticket, a file that ends in .ticket",
    ticket_good: "The ticket is one for this event.",
    ticket_none: "This is no ticket. The organiser gives you one.",
    ticket_other: "This ticket is for another event.",
    ticket_damaged: "This ticket is damaged. Copy it again.",
    ticket_revoked: "This ticket is revoked. Ask the organiser for the new one.",
    ticket_needed: "Choose your ticket first. The organiser gives you one.",
    file_needed: "Choose a file first.",
    too_long: "The file is too long: sealed it may have {most}.",
    no_room: "This browser has no room for the sealed file: it takes {wanted}, {free} are free. Nothing was handed in. Free some room, leave private browsing, or take another browser.",
    unreadable: "The file cannot be read any more; was it moved or changed? Nothing was handed in. Choose it again.",
    not_sealed: "The file could not be sealed: {words}. Nothing was handed in.",
    submit: "Hand in",
    counts_last: "You may hand in several times; the last file in time counts.",
    counts_first: "You may hand in several times; the first file in time counts.",
    counts_all: "You may hand in several files; all in time count.",
    items_title: "What you have handed in here",
    items_hint: "It is kept in this browser. You may close the page once a server holds the file and the receipt is saved; until then leave it open.",
    sealing: "Sealing the file. Nothing is proved yet.",
    asking: "Sealed and kept here. Nothing is proved yet: asking the services.",
    acknowledged: "A service holds it since {word}, by its own word. Witnesses have not signed yet.",
    late: "Late: proved by {logs} and {k} of {n} witnesses for {time}, after the deadline.",
    ready: "Proved by {logs} and {k} of {n} witnesses: ready at {time}, in time. Not sent yet.",
    sending: "Proved by {logs} and {k} of {n} witnesses: ready at {time}, in time. Sending to server {where}.",
    held: "Proved in time, at {time}; server {where} holds it, by its own word. Not collected yet.",
    held_last: "Proved in time, at {time}; server {where} holds it, by its own word.",
    proved_only: "Proved by {logs} and {k} of {n} witnesses: ready at {time}, in time. This event collects elsewhere.",
    collected: "Proved in time, at {time}, and collected by {at}.",
    refused: "Not handed in: all services refuse it. Nothing is proved.",
    interrupted: "Interrupted while it was sealed. Nothing was handed in: remove it, and choose the file again.",
    lost: "Proved in time, at {time}, but the sealed file is lost in this browser. Choose the same file again: it is sealed anew and sent.",
    stopped: "Stopped: {words}. Reload the page.",
    one_log: "1 log",
    logs: "{n} logs",
    no_answer: "gives no answer",
    trouble: "{who}: {words}",
    same_file: "The same file again",
    other_file: "This is another file than the one that was handed in.",
    save_receipt: "Save the receipt",
    save_keep: "Save {name}.keep",
    saved: "The receipt is saved.",
    keep_hint: "Before you close: save the receipt, and {name}.keep, with which you can go on elsewhere.",
    try_again: "Ask again",
    forget: "Remove from this browser",
    forget_sure: "Remove {name} and all that proves it from this browser? Save its receipt first.",
    progress: "Progress",
    check_title: "Check a receipt",
    check_hint: "This needs no network, and trusts no clock of yours.",
    check_receipt: "The receipt, a file that ends in .receipt.json",
    check_file: "What was handed in: the file, its .keep, or the sealed file",
    check: "Check",
    check_none: "This is no receipt: {words}.",
    in_time: "In time: {covers} stood in a log by {time}.",
    late_time: "Late: {covers} stood in a log by {time}.",
    not_proved: "This proves nothing.",
    covers_bytes: "some bytes, nobody knows which,",
    covers_sealed_file: "the sealed file",
    covers_file: "the file",
    other_event: "The receipt is of another event.",
    no_amendments: "Whether the deadline was moved is not known here.",
    not_file: "The file is not the one that was handed in, or was changed since.",
    not_sealed_file: "The sealed file is not the one that was handed in.",
    not_known: "Nothing tells here how the file was sealed: choose its .keep instead.",
    some_bytes: "No file was given.",
    word: "Handed in at {time}, by the word of the service alone.",
    no_word: "An acknowledgement does not count: no service of the event gave it.",
    proof_no_proof: "Proof {i} does not count: it is none.",
    proof_not_of_event: "Proof {i} does not count: it is of a log that is none of the event's.",
    proof_other_entry: "Proof {i} does not count: it is the proof of another entry.",
    proof_not_signed: "Proof {i} does not count: its checkpoint is not signed by the log's key.",
    proof_too_few: "Proof {i} does not count: {n} witnesses have signed it, and {k} make a time.",
    tokens_elsewhere: "Tokens of outside authorities are not judged here; `datacollect verify` does that.",
    counted_at: "Counted at {time}.",
    deadline_was: "The deadline was {time}.",
    collected_by: "Collected by {time}.",
    not_collected: "What says that it was collected does not count.",
    event_file: "The event's file",
    event_id: "Event",
    privacy: "Files are sealed in this browser; only the recipients of the event can open them.",
  },
  de: {
    language: "Sprache",
    deadline: "Abgabe bis",
    left: "Noch {left}, nach der Uhr der Dienste",
    left_unknown: "Noch {left}, nach der Uhr dieses Geräts, die niemand geprüft hat",
    opens: "Beginnt am {at}",
    over: "Die Frist ist abgelaufen.",
    clock_wrong: "Die Uhr dieses Geräts geht um {by} falsch. Die Uhr der Dienste zählt.",
    days: "{n} Tage",
    hours: "{n} Std.",
    minutes: "{n} Min.",
    seconds: "{n} Sek.",
    hand_in_title: "Eine Datei abgeben",
    file: "Ihre Datei",
    drop: "oder hierher ziehen",
    ticket: "Ihr Ticket, eine Datei mit der Endung .ticket",
    ticket_good: "Das Ticket gilt für diese Abgabe.",
    ticket_none: "Das ist kein Ticket. Sie bekommen eines vom Veranstalter.",
    ticket_other: "Dieses Ticket gilt für eine andere Abgabe.",
    ticket_damaged: "Dieses Ticket ist beschädigt. Kopieren Sie es noch einmal.",
    ticket_revoked: "Dieses Ticket gilt nicht mehr. Bitten Sie den Veranstalter um das neue.",
    ticket_needed: "Wählen Sie zuerst Ihr Ticket. Sie bekommen es vom Veranstalter.",
    file_needed: "Wählen Sie zuerst eine Datei.",
    too_long: "Die Datei ist zu groß: versiegelt darf sie {most} haben.",
    no_room: "Dieser Browser hat keinen Platz für die versiegelte Datei: sie braucht {wanted}, frei sind {free}. Es wurde nichts abgegeben. Schaffen Sie Platz, verlassen Sie den privaten Modus, oder nehmen Sie einen anderen Browser.",
    unreadable: "Die Datei ist nicht mehr lesbar; wurde sie verschoben oder geändert? Es wurde nichts abgegeben. Wählen Sie sie noch einmal.",
    not_sealed: "Die Datei konnte nicht versiegelt werden: {words}. Es wurde nichts abgegeben.",
    submit: "Abgeben",
    counts_last: "Sie können mehrmals abgeben; die letzte rechtzeitige Datei zählt.",
    counts_first: "Sie können mehrmals abgeben; die erste rechtzeitige Datei zählt.",
    counts_all: "Sie können mehrere Dateien abgeben; alle rechtzeitigen zählen.",
    items_title: "Was Sie hier abgegeben haben",
    items_hint: "Es liegt in diesem Browser. Schließen Sie die Seite erst, wenn ein Server die Datei hat und der Beleg gespeichert ist.",
    sealing: "Die Datei wird versiegelt. Bewiesen ist noch nichts.",
    asking: "Versiegelt und hier gespeichert. Bewiesen ist noch nichts: die Dienste werden gefragt.",
    acknowledged: "Ein Dienst hat den Eintrag seit {word}, nach eigener Aussage. Die Zeugen haben noch nicht unterschrieben.",
    late: "Zu spät: {logs} und {k} von {n} Zeugen beweisen {time}, nach Ablauf der Frist.",
    ready: "Bewiesen durch {logs} und {k} von {n} Zeugen: fertig um {time}, rechtzeitig. Noch nicht gesendet.",
    sending: "Bewiesen durch {logs} und {k} von {n} Zeugen: fertig um {time}, rechtzeitig. Wird an Server {where} gesendet.",
    held: "Rechtzeitig, bewiesen für {time}; Server {where} hat die Datei, nach eigener Aussage. Noch nicht eingesammelt.",
    held_last: "Rechtzeitig, bewiesen für {time}; Server {where} hat die Datei, nach eigener Aussage.",
    proved_only: "Bewiesen durch {logs} und {k} von {n} Zeugen: fertig um {time}, rechtzeitig. Eingesammelt wird auf anderem Weg.",
    collected: "Rechtzeitig, bewiesen für {time}, und eingesammelt bis {at}.",
    refused: "Nicht abgegeben: alle Dienste lehnen ab. Bewiesen ist nichts.",
    interrupted: "Beim Versiegeln unterbrochen. Es wurde nichts abgegeben: entfernen Sie den Eintrag, und wählen Sie die Datei noch einmal.",
    lost: "Rechtzeitig, bewiesen für {time}, aber die versiegelte Datei ging in diesem Browser verloren. Wählen Sie dieselbe Datei noch einmal: sie wird neu versiegelt und gesendet.",
    stopped: "Angehalten: {words}. Laden Sie die Seite neu.",
    one_log: "1 Log",
    logs: "{n} Logs",
    no_answer: "antwortet nicht",
    trouble: "{who}: {words}",
    same_file: "Dieselbe Datei noch einmal",
    other_file: "Das ist eine andere Datei als die abgegebene.",
    save_receipt: "Beleg speichern",
    save_keep: "{name}.keep speichern",
    saved: "Der Beleg ist gespeichert.",
    keep_hint: "Vor dem Schließen: speichern Sie den Beleg und {name}.keep; damit geht es anderswo weiter.",
    try_again: "Noch einmal fragen",
    forget: "Aus diesem Browser entfernen",
    forget_sure: "{name} und alles, was dafür beweist, aus diesem Browser entfernen? Speichern Sie zuerst den Beleg.",
    progress: "Fortschritt",
    check_title: "Einen Beleg prüfen",
    check_hint: "Dafür braucht es kein Netz, und keine Ihrer Uhren zählt.",
    check_receipt: "Der Beleg, eine Datei mit der Endung .receipt.json",
    check_file: "Was abgegeben wurde: die Datei, ihre .keep-Datei oder die versiegelte Datei",
    check: "Prüfen",
    check_none: "Das ist kein Beleg: {words}.",
    in_time: "Rechtzeitig: {covers} stand bis {time} in einem Log.",
    late_time: "Zu spät: {covers} stand bis {time} in einem Log.",
    not_proved: "Das beweist nichts.",
    covers_bytes: "etwas, niemand weiß was,",
    covers_sealed_file: "die versiegelte Datei",
    covers_file: "die Datei",
    other_event: "Der Beleg gehört zu einer anderen Abgabe.",
    no_amendments: "Ob die Frist verlängert wurde, ist hier nicht bekannt.",
    not_file: "Die Datei ist nicht die abgegebene, oder wurde seither geändert.",
    not_sealed_file: "Die versiegelte Datei ist nicht die abgegebene.",
    not_known: "Hier weiß niemand, wie die Datei versiegelt wurde: wählen Sie ihre .keep-Datei.",
    some_bytes: "Es wurde keine Datei angegeben.",
    word: "Abgegeben um {time}, nach Aussage des Dienstes allein.",
    no_word: "Eine Bestätigung zählt nicht: kein Dienst dieser Abgabe hat sie gegeben.",
    proof_no_proof: "Beweis {i} zählt nicht: er ist keiner.",
    proof_not_of_event: "Beweis {i} zählt nicht: sein Log gehört nicht zu dieser Abgabe.",
    proof_other_entry: "Beweis {i} zählt nicht: er gehört zu einem anderen Eintrag.",
    proof_not_signed: "Beweis {i} zählt nicht: der Schlüssel des Logs hat nicht unterschrieben.",
    proof_too_few: "Beweis {i} zählt nicht: {n} Zeugen haben unterschrieben, {k} ergeben eine Zeit.",
    tokens_elsewhere: "Zeitstempel äußerer Stellen werden hier nicht geprüft; das tut `datacollect verify`.",
    counted_at: "Gezählt um {time}.",
    deadline_was: "Die Frist war {time}.",
    collected_by: "Eingesammelt bis {time}.",
    not_collected: "Was sagt, dass eingesammelt wurde, zählt nicht.",
    event_file: "Die Datei der Abgabe",
    event_id: "Abgabe",
    privacy: "Dateien werden in diesem Browser versiegelt; nur die Empfänger der Abgabe können sie öffnen.",
  },
};

// How a language writes things; `texts.say(key, values)`.
export class Texts {
  constructor(language) {
    this.language = language in TEXTS ? language : "en";
  }

  say(key, values = {}) {
    return TEXTS[this.language][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  }

  // An instant by the reader's own zone; with its seconds and the zone's name.
  instant(time) {
    const style = { dateStyle: "medium", timeStyle: "long" };
    return new Intl.DateTimeFormat(this.language, style).format(time * 1000);
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
    const units = ["B", "kB", "MB", "GB", "TB"];
    const i = Math.min(Math.floor(Math.log10(Math.max(n, 1)) / 3), 4);
    const text = new Intl.NumberFormat(this.language, { maximumSignificantDigits: 3 }).format(n / 1000 ** i);
    return `${text} ${units[i]}`;
  }
}
