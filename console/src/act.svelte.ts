// One action of a form or a button: under way, failed, done.

import { words } from "./api/client";
import { notices } from "./notices.svelte";

export class Act {
  busy = $state(false);
  error = $state("");

  /** Runs it, once at a time, and says `done` if it succeeds. */
  async run(action: () => Promise<unknown>, done = ""): Promise<boolean> {
    if (this.busy) return false;
    this.busy = true;
    this.error = "";
    try {
      await action();
      if (done) notices.say(done);
      return true;
    } catch (error) {
      this.error = words(error);
      return false;
    } finally {
      this.busy = false;
    }
  }
}

/** Arguments that somebody has typed as JSON. */
export function parseArguments(text: string): Record<string, unknown> {
  if (text.trim() === "") return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new Error(`The arguments are no JSON: ${words(error)}`);
  }
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) throw new Error("The arguments must be an object, such as {\"x-max-length\": 1000}.");
  return parsed as Record<string, unknown>;
}
