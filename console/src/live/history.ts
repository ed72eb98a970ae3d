// Samples over time, and rates from counters that only grow until the broker starts anew.

/** An hour at one sample each two seconds. */
const SAMPLES_MAX = 1_800;
/** Without samples for so long, a line has a gap. */
const GAP_MS = 15_000;

export type Sample = Record<string, number>;

/** What a sample was, and when. */
export interface PastSample {
  atMs: number;
  measured: Sample;
}

/** Asks the API for samples of the last hour beside the figures, as far as it has them: the first question of a history. */
export const WITH_PAST = "lengths_age=3600&lengths_incr=10&msg_rates_age=3600&msg_rates_incr=10";

interface Details {
  samples?: { sample: number; timestamp: number }[];
}

/** The samples that stand beside figures, the oldest first. `names` says of which figures each value is the sum. */
export function pastOf(figures: object, names: Record<string, string[]>): PastSample[] {
  const all = figures as Record<string, Details | undefined>;
  // The latest is first there, and all have the same times.
  const of = (figure: string) => all[`${figure}_details`]?.samples ?? [];
  const times = of(Object.values(names)[0]?.[0] ?? "").map((sample) => sample.timestamp);
  const sum = (places: string[], at: number) => places.reduce((total, figure) => total + (of(figure)[at]?.sample ?? 0), 0);
  const past = times.map((atMs, at) => ({
    atMs,
    measured: Object.fromEntries(Object.entries(names).map(([name, places]) => [name, sum(places, at)])),
  }));
  return past.reverse();
}

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

  get isEmpty(): boolean {
    return this.times.length === 0;
  }

  /** Takes what the broker has seen before, while nothing else is there. */
  begin(past: PastSample[]): void {
    // Its clock may be ahead of ours.
    const ahead = Math.max(0, (past.at(-1)?.atMs ?? 0) + 1 - Date.now());
    if (this.isEmpty) for (const { atMs, measured } of past) this.add(atMs - ahead, measured);
  }

  /** Takes what was measured at a time: gauges as they are, counters as what they grew by in a second. */
  add(atMs: number, measured: Sample): void {
    const last = this.#last;
    if (last && atMs <= last.atMs) return;
    const elapsedMs = last ? atMs - last.atMs : Infinity;
    if (last && elapsedMs > GAP_MS) this.#push(last.atMs + 1, () => null);
    this.#push(atMs, (name) => {
      const value = measured[name];
      if (value === undefined || !this.counters.includes(name)) return value ?? null;
      const before = last?.counters[name];
      // Less than before: the broker has started anew, or the object was made anew.
      return before === undefined || value < before ? null : ((value - before) * 1_000) / elapsedMs;
    });
    this.#last = { atMs, counters: measured };
  }

  /** Takes gauges that come and go, such as one of each relay: one that is new has no values until now. Of at most `most` those that were there first go. */
  follow(names: string[], most: number): void {
    for (const name of names) this.values[name] ??= this.times.map(() => null);
    const gone = Object.keys(this.values).filter((name) => !names.includes(name) && !this.gauges.includes(name) && !this.counters.includes(name));
    for (const name of gone.slice(0, Math.max(0, gone.length + names.length - most))) delete this.values[name];
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
