// Rates of many objects: what each counter grew by between two answers.

import type { Channel, MessageStats } from "../api/types";
import { rate } from "../format";

type Counters = Pick<MessageStats, "publish" | "deliver_get" | "ack">;

interface Rates {
  in: number;
  out: number;
  acknowledged: number;
}

const NONE: Rates = { in: 0, out: 0, acknowledged: 0 };

/** Of what the last two answers had; what is gone is forgotten. */
export class RatesOfMany<T> {
  #last = new Map<string, Counters>();
  #lastAtMs = 0;
  #rates = new Map<string, Rates>();

  constructor(
    readonly key: (object: T) => string,
    readonly counters: (object: T) => Counters,
  ) {}

  take(objects: T[], atMs: number): void {
    const seconds = (atMs - this.#lastAtMs) / 1_000;
    const [before, rates] = [this.#last, new Map<string, Rates>()];
    const now = new Map<string, Counters>();
    for (const object of objects) {
      const [key, stats] = [this.key(object), this.counters(object)];
      const last = before.get(key);
      now.set(key, stats);
      if (!last) continue;
      const since = (name: keyof Counters): number => grown(last[name], stats[name], seconds);
      rates.set(key, { in: since("publish"), out: since("deliver_get"), acknowledged: since("ack") });
    }
    this.#last = now;
    this.#lastAtMs = atMs;
    this.#rates = rates;
  }

  /** Whether it was there in both answers. */
  knows(object: T): boolean {
    return this.#rates.has(this.key(object));
  }

  of(object: T): Rates {
    return this.#rates.get(this.key(object)) ?? NONE;
  }
}

/** A column of channels: how much a second it is. */
export function channelRate(title: string, stat: "publish" | "confirm" | "deliver_get" | "ack", minor: boolean) {
  const of = (channel: Channel): number | undefined => channel.message_stats[`${stat}_details`]?.rate;
  return { title, value: (channel: Channel) => of(channel) ?? 0, text: (channel: Channel) => rate(of(channel)), numeric: true, minor };
}

function grown(before: number, now: number, seconds: number): number {
  return now < before || seconds <= 0 ? 0 : (now - before) / seconds;
}
