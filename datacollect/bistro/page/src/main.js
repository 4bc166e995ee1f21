// One file is both the page and its worker: whoever has its hash has all.
import { show } from "./page.js";
import { work } from "./worker.js";

if (globalThis.document) show();
else work();
