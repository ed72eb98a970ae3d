// What is asked for again and again while it is shown.

import { ApiError, Unreachable } from "../api/client";
import { reachability } from "./reachability.svelte";

/** While the broker is gone. */
const RETRY_MS = 1_000;
/** Answering may take a fortieth of the time: what takes long is asked for less often, */
const SHARE = 40;
/** but not so much less that it seems to stand still. */
const SLOWER_MAX = 6;

/** Answers to one question, the newest of which is `data`. */
export class Live<T> {
  data = $state.raw<T | undefined>();
  /** Why there was no newer answer; what was known before stays. */
  error = $state.raw<unknown>();
  /** When `data` came. */
  at = $state(0);

  #load: (signal: AbortSignal) => Promise<T>;
  #periodMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;

  constructor(load: (signal: AbortSignal) => Promise<T>, periodMs: number) {
    this.#load = load;
    this.#periodMs = periodMs;
  }

  /** Runs until the returned function is called. */
  start(): () => void {
    void this.refresh();
    return () => this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = undefined;
  }

  /** Asks now, and goes on from here. */
  async refresh(): Promise<void> {
    this.stop();
    const abort = new AbortController();
    this.#abort = abort;
    const began = performance.now();
    let waitMs = this.#periodMs;
    try {
      const data = await this.#load(abort.signal);
      if (abort.signal.aborted) return;
      this.data = data;
      this.error = undefined;
      this.at = Date.now();
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = error;
      const isDown = error instanceof Unreachable || (error instanceof ApiError && error.status === 503);
      if (isDown) waitMs = RETRY_MS;
    }
    const tookMs = performance.now() - began;
    if (reachability.lostAt === null) waitMs = Math.max(waitMs, Math.min(tookMs * SHARE, waitMs * SLOWER_MAX));
    this.#timer = setTimeout(() => void this.refresh(), waitMs);
  }
}

/** A question that is asked while the component which calls this is shown. */
export function live<T>(load: (signal: AbortSignal) => Promise<T>, periodMs = 5_000): Live<T> {
  const answers = new Live(load, periodMs);
  $effect(() => answers.start());
  return answers;
}
