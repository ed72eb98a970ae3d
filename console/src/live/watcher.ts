// One stream of server-sent events for all that is shown of the API: each path that is watched is answered again and again.

import { openStream, ownPath } from "../api/client";

/** What waits for answers of one path. */
export interface Watching {
  /** A new answer, or the one before, which still holds. */
  answered: (status: number, body: unknown) => void;
  /** The stream is over: somebody has to ask, and may watch again. */
  lost: () => void;
}

const INTERVAL_MS = 2_000;
/** The server's limit. */
const PATHS_MAX = 16;
/** After a stream that brought nothing, for so long nobody tries another. */
const UNAVAILABLE_MS = 30_000;
/** Pages are left and entered: their paths go and come together. */
const SETTLE_MS = 30;

interface Watched {
  path: string;
  watching: Watching;
  last: { status: number; body: unknown } | undefined;
}

class Watcher {
  #all = new Set<Watched>();
  #abort: AbortController | undefined;
  #settle: ReturnType<typeof setTimeout> | undefined;
  #unavailableUntilMs = 0;

  /** Whether it is worth while to watch. What is between us and the server may let no stream through. */
  get isAvailable(): boolean {
    return Date.now() >= this.#unavailableUntilMs;
  }

  /** Watches a path until the returned function is called or the stream is lost. */
  watch(path: string, watching: Watching): () => void {
    const watched = { path, watching, last: undefined };
    this.#all.add(watched);
    this.#reopenSoon();
    return () => {
      if (this.#all.delete(watched)) this.#reopenSoon();
    };
  }

  #reopenSoon(): void {
    clearTimeout(this.#settle);
    this.#settle = setTimeout(() => void this.#open(), SETTLE_MS);
  }

  async #open(): Promise<void> {
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    const paths = [...new Set([...this.#all].map((watched) => watched.path))].slice(0, PATHS_MAX);
    if (paths.length === 0) return;
    let isAnswered = false;
    try {
      const query = paths.map((path) => `path=${encodeURIComponent(path)}`).join("&");
      for await (const { event, data } of openStream(`${ownPath("watch")}?interval_ms=${INTERVAL_MS}&${query}`, abort.signal)) {
        const said = JSON.parse(data) as { path: string; status: number; body: unknown };
        isAnswered = true;
        for (const watched of [...this.#all].filter((one) => one.path === said.path)) {
          if (event === "answer") watched.last = said;
          if (watched.last) watched.watching.answered(watched.last.status, watched.last.body);
        }
      }
    } catch {
      // Whoever asks again learns why.
    }
    if (abort.signal.aborted) return;
    if (!isAnswered) this.#unavailableUntilMs = Date.now() + UNAVAILABLE_MS;
    const all = [...this.#all];
    this.#all.clear();
    for (const watched of all) watched.watching.lost();
  }
}

export const watcher = new Watcher();
