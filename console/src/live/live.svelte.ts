// What is asked for again and again while it is shown.

import { ApiError, request, Unreachable } from "../api/client";
import { reachability } from "./reachability.svelte";
import { watcher } from "./watcher";

/** While the broker is gone. */
const RETRY_MS = 1_000;
/** Answering may take a hundredth of the time: what takes long is asked for less often, */
const SHARE = 100;
/** but not so much less that it seems to stand still. */
const SLOWER_MAX = 12;

/** Answers to one question, the newest of which is `data`. */
export class Live<T> {
  data = $state.raw<T | undefined>();
  /** Why there was no newer answer; what was known before stays. */
  error = $state.raw<unknown>();
  /** When `data` came. */
  at = $state(0);

  #load: (signal: AbortSignal) => Promise<T>;
  #periodMs: number;
  #pushed: Pushed<T> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;
  #unwatch: (() => void) | undefined;

  constructor(load: (signal: AbortSignal) => Promise<T>, periodMs: number, pushed?: Pushed<T>) {
    this.#load = load;
    this.#periodMs = periodMs;
    this.#pushed = pushed;
  }

  /** Runs until the returned function is called. */
  start(): () => void {
    void this.refresh();
    return () => this.stop();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#unwatch?.();
    this.#unwatch = undefined;
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
      this.#show(data);
      if (this.#pushed && watcher.isAvailable) return this.#watch(this.#pushed);
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

  #show(data: T): void {
    this.data = data;
    this.error = undefined;
    this.at = Date.now();
  }

  /** From here on answers are pushed, until one is none or the stream is lost. */
  #watch({ path, take }: Pushed<T>): void {
    const ask = (): void => void this.refresh();
    this.#unwatch = watcher.watch(path(), {
      answered: (status, body) => {
        if (status !== 200) return ask();
        reachability.answered();
        this.#show(take(body));
      },
      lost: ask,
    });
  }
}

/** What is asked for once, and then pushed whenever it is another. */
interface Pushed<T> {
  /** Throws for a name of which a browser makes another path. */
  path: () => string;
  take: (found: unknown) => T;
}

/** A question that is asked while the component which calls this is shown. */
export function live<T>(load: (signal: AbortSignal) => Promise<T>, periodMs = 5_000): Live<T> {
  const answers = new Live(load, periodMs);
  $effect(() => answers.start());
  return answers;
}

interface Options {
  /** What stands behind the path of the first question, such as samples of the past. */
  first?: () => string;
  /** While there is no stream. */
  periodMs?: number;
}

/** What a path answers, pushed while the component which calls this is shown. `take` makes of each answer what is shown. */
export function pushed<T, D = T>(path: () => string, take: (found: T) => D, options: Options = {}): Live<D> {
  const answers = livePushed(path, take, options);
  $effect(() => answers.start());
  return answers;
}

/** The same, for who starts and stops it. */
export function livePushed<T, D = T>(path: () => string, take: (found: T) => D, { first, periodMs = 2_000 }: Options = {}): Live<D> {
  const load = async (signal: AbortSignal): Promise<D> => take(await request<T>(`${path()}${first?.() ?? ""}`, { signal }));
  return new Live(load, periodMs, { path, take: (found) => take(found as T) });
}
