// Whether the broker answers.

/** A late answer of before does not count as a sign of life for long: the next request decides. */
class Reachability {
  /** Since when there is no answer, in milliseconds; null while there is one. */
  lostAt = $state<number | null>(null);
  /** When it answered again. */
  backAt = $state<number | null>(null);

  failed(): void {
    this.lostAt ??= Date.now();
  }

  answered(): void {
    if (this.lostAt === null) return;
    this.lostAt = null;
    this.backAt = Date.now();
  }
}

export const reachability = new Reachability();
