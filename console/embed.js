// Writes `files.rs` beside the built files: what the crate `quelea-management` includes, each file plain and
// compressed with its type and its hash.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { constants, gzipSync } from "node:zlib";

const TYPES = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
};

/** A plugin that runs when everything is written. */
export function embed() {
  let out;
  return {
    name: "quelea-embed",
    apply: "build",
    configResolved(config) {
      out = path.resolve(config.root, config.build.outDir);
    },
    closeBundle() {
      const files = readdirSync(out, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => path.relative(out, path.join(entry.parentPath ?? entry.path, entry.name)))
        .filter((name) => path.extname(name) in TYPES)
        .sort();
      writeFileSync(path.join(out, "files.rs"), `&[\n${files.map((name) => entry(out, name)).join("")}]\n`);
    },
  };
}

function entry(out, name) {
  const bytes = readFileSync(path.join(out, name));
  writeFileSync(path.join(out, `${name}.gz`), gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 32);
  const words = {
    path: name === "index.html" ? "/" : `/${name}`,
    content_type: TYPES[path.extname(name)],
  };
  const fields = Object.entries(words).map(([field, word]) => `${field}: ${JSON.stringify(word)}, `);
  const etag = JSON.stringify(`W/"${hash}"`);
  // What is named by its hash never changes.
  const immutable = name.startsWith("assets/");
  return (
    `    File { ${fields.join("")}etag: Some(${etag}), immutable: ${immutable}, ` +
    `plain: include_bytes!(${JSON.stringify(name)}), gzip: Some(include_bytes!(${JSON.stringify(`${name}.gz`)})) },\n`
  );
}
