// What live pages share: elements, tables, and how they hear what is new.
"use strict";
const live = (() => {
  const AGAIN_MS = 2000;
  const byId = id => document.getElementById(id);
  const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium"});

  function element(name, text) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // The first cell of a row is its heading; columns whose name begins with "#" hold numbers.
  function table(into, caption, columns, rows) {
    const names = columns.map(each => each.replace("#", ""));
    const cell = (tag, text, i) => {
      const made = element(tag, text);
      if (columns[i].startsWith("#")) made.className = "number";
      return made;
    };
    // Said again, since rows that are blocks of their own, on narrow screens, are none to all readers.
    const row = () => {
      const made = element("tr");
      made.setAttribute("role", "row");
      return made;
    };
    const head = row();
    head.append(...names.map((name, i) => {
      const made = cell("th", name, i);
      made.scope = "col";
      made.setAttribute("role", "columnheader");
      return made;
    }));
    const body = rows.map(texts => {
      const made = row();
      made.append(...texts.map((text, i) => {
        const one = cell(i ? "td" : "th", text, i);
        if (!i) one.scope = "row";
        one.setAttribute("role", i ? "cell" : "rowheader");
        one.dataset.label = names[i];
        return one;
      }));
      return made;
    });
    const parts = [element("caption", caption), element("thead"), element("tbody")];
    parts[1].append(head);
    parts[2].append(...body);
    for (const part of parts.slice(1)) part.setAttribute("role", "rowgroup");
    into.setAttribute("role", "table");
    if (names.length > 3) into.className = "narrow";
    into.replaceChildren(...parts);
  }

  function said(text, isAway) {
    byId("state").textContent = text;
    byId("state").classList.toggle("away", isAway);
  }

  // Hands what is new to `show`, and what it says to the state; true from it: nothing more comes.
  async function listen(show, words) {
    const headers = {Authorization: `Bearer ${location.hash.slice(1)}`};
    const answer = await fetch("events", {headers});
    if (answer.status === 401) {
      said("Open the address as it was printed: what follows # lets you in.", true);
      return true;
    }
    if (!answer.ok) throw new Error(`answers ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) throw new Error("has ended");
      held += value;
      const messages = held.split("\n\n");
      held = messages.pop();
      for (const each of messages) {
        if (!each.startsWith("data: ")) continue;
        said(words, false);
        const end = show(JSON.parse(each.slice(6)));
        document.body.dataset.ready = "yes";
        if (end) {
          said(end, false);
          return true;
        }
      }
    }
  }

  async function follow(show, words) {
    addEventListener("hashchange", () => location.reload());
    for (;;) {
      try {
        if (await listen(show, words)) return;
      } catch (error) {
        said(`Not connected since ${clock.format(new Date())}; what is shown is older.`, true);
      }
      await new Promise(go => setTimeout(go, AGAIN_MS));
    }
  }

  return {byId, clock, element, table, follow};
})();
