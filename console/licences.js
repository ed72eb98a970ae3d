// Gathers the licences of what npm brings into the bundle, as `licences.txt`; a licence that is not allowed ends the build.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";

/** Those of deny.toml that npm's packages have. */
const ALLOWED = new Set(["Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "CC0-1.0", "MIT-0"]);
const PACKAGE = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/;

export function licences() {
  return {
    name: "quelea-licences",
    apply: "build",
    generateBundle(_, bundle) {
      const folders = new Set();
      for (const chunk of Object.values(bundle)) {
        for (const id of chunk.moduleIds ?? []) {
          const folder = PACKAGE.exec(id.replace(/^\0/, ""))?.[1];
          if (folder) folders.add(folder);
        }
        // Style sheets are no modules of a chunk any more.
        if (chunk.fileName.endsWith(".css")) folders.add(path.resolve("node_modules/uplot"));
      }
      const texts = [...folders].filter((folder) => path.isAbsolute(folder)).map(licence);
      this.emitFile({ type: "asset", fileName: "licences.txt", source: `${[...new Set(texts)].sort().join(`\n${"-".repeat(80)}\n\n`)}\n` });
    },
  };
}

function licence(folder) {
  const root = existsSync(folder) ? folder : path.resolve("..", "node_modules", path.basename(folder));
  const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  if (!ALLOWED.has(manifest.license)) throw new Error(`${manifest.name}: the licence ${manifest.license} is not allowed`);
  const file = readdirSync(root).find((name) => /^licen[cs]e/i.test(name));
  const text = file ? readFileSync(path.join(root, file), "utf8").trim() : "";
  return `${manifest.name} ${manifest.version} (${manifest.license})\n\n${text}\n`;
}
