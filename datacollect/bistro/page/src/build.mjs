// Makes the files that are served, into the folder that is named: `npm ci`, then `npm run build`.
import { build } from "esbuild";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const into = argv[2];

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ["main.js"],
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  alias: {
    "url-parse": "./url.js",
    "@noble/post-quantum/hybrid.js": "./none.js",
    "@noble/curves/nist.js": "./none.js",
    "@noble/hashes/scrypt.js": "./none.js",
  },
  metafile: true,
  outfile: join(into, "page.js"),
});

// The licences of all that is in it, as each package brings its own.
const folders = Object.keys(metafile.inputs).map((path) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0]);
const texts = [];
for (const folder of [...new Set(folders.filter(Boolean))].sort()) {
  const { name, version, license } = JSON.parse(await readFile(join(here, folder, "package.json"), "utf8"));
  const files = (await readdir(join(here, folder))).filter((each) => /^licen[cs]e/i.test(each));
  const text = files.length ? await readFile(join(here, folder, files[0]), "utf8") : "";
  texts.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
}
await writeFile(join(into, "licences.txt"), texts.join(`\n${"-".repeat(80)}\n\n`));
