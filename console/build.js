// What build.sh runs: installs what package-lock.json pins, builds, and prints where the result is.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

const HERE = import.meta.dirname;
const CACHE = process.env.QUELEA_CACHE || path.join(os.homedir(), ".cache", "quelea");
const PINS = ["package.json", "package-lock.json"];
const LEFT_OUT = new Set(["node_modules", "dist", "README.md"]);

const pins = hash(PINS);
const sources = readdirSync(HERE, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => path.relative(HERE, path.join(entry.parentPath ?? entry.path, entry.name)))
  .filter((name) => !LEFT_OUT.has(name.split(path.sep)[0]))
  .sort();
const modules = path.join(CACHE, `console-${pins}`);
const built = path.join(modules, `built-${hash(sources)}`);

if (process.argv.includes("--check")) {
  inCopy((work) => node("svelte-check/bin/svelte-check", ["--tsconfig", "./tsconfig.json", "--fail-on-warnings"], work));
} else {
  if (!existsSync(built)) {
    inCopy((work) => {
      node("vite/bin/vite.js", ["build", "--logLevel", "warn"], work);
      settle(path.join(work, "dist"), built);
    });
  }
  process.stdout.write(`${built}\n`);
}

/** Works on a copy of the sources beside the modules, where they are found. */
function inCopy(action) {
  // Two who build at the same time do not see each other's halves: what is whole is renamed.
  install();
  const work = path.join(modules, `work-${process.pid}`);
  mkdirSync(work, { recursive: true });
  try {
    for (const name of sources) cpSync(path.join(HERE, name), path.join(work, name));
    action(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Runs a program that npm has installed. */
function node(program, words, cwd) {
  run(process.execPath, [path.join(modules, "node_modules", program), ...words], cwd);
}

function install() {
  const place = path.join(modules, "node_modules");
  if (existsSync(place)) return;
  const work = path.join(CACHE, `console-install-${process.pid}`);
  mkdirSync(work, { recursive: true });
  mkdirSync(modules, { recursive: true });
  try {
    for (const name of PINS) cpSync(path.join(HERE, name), path.join(work, name));
    run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], work);
    settle(path.join(work, "node_modules"), place);
    writeFileSync(path.join(modules, "package.json"), readFileSync(path.join(HERE, "package.json")));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Renames, unless another was faster. */
function settle(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to)) throw error;
  }
}

function run(command, words, cwd) {
  // Their output is for people: standard output is for the folder's name.
  execFileSync(command, words, { cwd, stdio: ["ignore", 2, 2] });
}

function hash(names) {
  const digest = createHash("sha256");
  for (const name of names) digest.update(`${name}\0`).update(readFileSync(path.join(HERE, name))).update("\0");
  return digest.digest("hex").slice(0, 16);
}
