// Samples over time, and rates from counters that only grow until the broker starts anew.

/** An hour at one sample each two seconds. */
const SAMPLES_MAX = 1_800;
/** Without samples for so long, a line has a gap. */
const GAP_MS = 15_000;

export type Sample = Record<string, number>;

/** The last hour of several values; `null` where there is none. */
export class History {
  /** Seconds since 1970, as uPlot wants them. */
  readonly times: number[] = [];
  readonly values: Record<string, (number | null)[]> = {};
  #last: { atMs: number; counters: Sample } | undefined;

  constructor(
    readonly gauges: readonly string[],
    readonly counters: readonly string[],
  ) {
    for (const name of [...gauges, ...counters]) this.values[name] = [];
  }

  /** Forgets everything. */
  clear(): void {
    this.times.length = 0;
    for (const values of Object.values(this.values)) values.length = 0;
    this.#last = undefined;
  }

  /** Takes what was measured at a time: gauges as they are, counters as what they grew by in a second. */
  add(atMs: number, measured: Sample): void {
    const last = this.#last;
    if (last && atMs <= last.atMs) return;
    const elapsedMs = last ? atMs - last.atMs : Infinity;
    if (last && elapsedMs > GAP_MS) this.#push(last.atMs + 1, () => null);
    this.#push(atMs, (name) => {
      const value = measured[name] ?? 0;
      if (this.gauges.includes(name)) return value;
      const before = last?.counters[name];
      // Less than before: the broker has started anew, or the object was made anew.
      return before === undefined || value < before ? null : ((value - before) * 1_000) / elapsedMs;
    });
    this.#last = { atMs, counters: measured };
  }

  /** The newest value; null if there is none yet. */
  latest(name: string): number | null {
    return this.values[name]?.at(-1) ?? null;
  }

  /** By how much a gauge has grown a second over the last samples; 0 if that is not known. */
  growth(name: string, samples: number): number {
    const values = this.values[name] ?? [];
    const from = Math.max(0, values.length - samples);
    const [first, last] = [values[from], values.at(-1)];
    const seconds = (this.times.at(-1) ?? 0) - (this.times[from] ?? 0);
    return first == null || last == null || seconds <= 0 ? 0 : (last - first) / seconds;
  }

  #push(atMs: number, value: (name: string) => number | null): void {
    this.times.push(atMs / 1_000);
    for (const [name, values] of Object.entries(this.values)) values.push(value(name));
    if (this.times.length > SAMPLES_MAX) {
      this.times.shift();
      for (const values of Object.values(this.values)) values.shift();
    }
  }
}
