// What people drop on the page: one file, several, or a folder, which is none.

const MOST_NAMES = 20;

// `{ files, hasFolder }`; to be asked for while the event is dispatched.
export function dropped({ files, items }) {
  const hasFolder = [...items].some((item) => item.webkitGetAsEntry?.()?.isDirectory);
  return { files: [...files], hasFolder };
}

// A button for each of several files, so that people say which one is meant.
export function nameButtons(files, texts, take) {
  const buttons = files.slice(0, MOST_NAMES).map((file) => {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.textContent = `${file.name}, ${texts.bytes(file.size)}`;
    button.addEventListener("click", () => take(file));
    return button;
  });
  const n = files.length - buttons.length;
  const more = n ? [Object.assign(document.createElement("p"), { textContent: texts.say("several_more", { n }) })] : [];
  return [...buttons, ...more];
}
