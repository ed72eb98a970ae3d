// Histories of what was shown, for as long as the page is open: whoever comes back to an object sees what there was before.

import { History, type Sample } from "./history";

/** Each of an hour: some 100 kB. Beyond that the one that was looked at least lately is forgotten. */
const KEPT_MAX = 32;

export class KeptHistory {
  readonly history: History;
  /** Grows with each sample, so that what shows the history knows. */
  samples = $state(0);

  constructor(gauges: readonly string[], counters: readonly string[]) {
    this.history = new History(gauges, counters);
  }

  add(measured: Sample): void {
    this.history.add(Date.now(), measured);
    this.samples += 1;
  }
}

const all = new Map<string, KeptHistory>();

/** That of an object, which is known by the page's names. */
export function keptHistory(names: string[], gauges: readonly string[], counters: readonly string[]): KeptHistory {
  const key = JSON.stringify(names);
  const kept = all.get(key) ?? new KeptHistory(gauges, counters);
  // The map's order is that of the last look.
  all.delete(key);
  all.set(key, kept);
  if (all.size > KEPT_MAX) all.delete(all.keys().next().value!);
  return kept;
}

/** For whoever signs in next. */
export function forgetHistories(): void {
  all.clear();
}
