// The broker's totals, sampled from the sign-in on, whichever page is shown.

import { request, requestText } from "../api/client";
import type { Overview } from "../api/types";
import { History, pastOf, type Sample, WITH_PAST } from "./history";
import { forgetHistories } from "./kept.svelte";
import { Live, livePushed } from "./live.svelte";

const METRICS_PERIOD_MS = 10_000;

export const GAUGES = ["ready", "unacknowledged", "connections"];
export const COUNTERS = ["publish", "deliver_get", "ack", "redeliver", "expired", "dead_lettered", "unroutable"];

/** Of which figures of the API's samples each is the sum; there are none of connections. */
const PAST = {
  ready: ["messages_ready"],
  unacknowledged: ["messages_unacknowledged"],
  publish: ["publish"],
  deliver_get: ["deliver_get"],
  ack: ["ack"],
  redeliver: ["redeliver"],
  expired: ["expired"],
  dead_lettered: ["dead_lettered"],
  unroutable: ["drop_unroutable", "return_unroutable"],
};

type QueueClass = Overview["queue_classes"][number];

class BrokerState {
  overview = livePushed<Overview>(() => "/api/overview", (found) => this.#sample(found), { first: () => (this.history.isEmpty ? `?${WITH_PAST}` : "") });
  metrics = new Live<Map<string, number>>(async (signal) => parseMetrics(await requestText("/metrics", { signal })), METRICS_PERIOD_MS);
  history = new History(GAUGES, COUNTERS);
  /** Grows with each sample, so that what shows the history knows. */
  samples = $state(0);
  #asked: Promise<Overview> | undefined;

  /** Begins anew, for whoever has signed in. */
  start(): () => void {
    this.history.clear();
    forgetHistories();
    this.overview.data = this.metrics.data = undefined;
    const stops = [this.overview.start(), this.metrics.start()];
    return () => stops.forEach((stop) => stop());
  }

  /** A front-end over Cassandra, without queues of its own. */
  get isFrontEnd(): boolean {
    return this.knowsClass("ordered") === false;
  }

  /** Whether it has queues of that class; `undefined`: nobody knows yet. */
  knowsClass(name: QueueClass): boolean | undefined {
    return this.overview.data?.queue_classes.includes(name);
  }

  /** The same, asked for if it is not known. */
  async hasClass(name: QueueClass): Promise<boolean> {
    return this.knowsClass(name) ?? (await this.#askOnce()).queue_classes.includes(name);
  }

  /** A page's lists all want to know at once, before the overview has come. */
  #askOnce(): Promise<Overview> {
    this.#asked ??= request<Overview>("/api/overview").finally(() => (this.#asked = undefined));
    return this.#asked;
  }

  #sample(overview: Overview): Overview {
    this.history.begin(pastOf({ ...overview.queue_totals, ...overview.message_stats }, PAST));
    this.history.add(Date.now(), sampled(overview));
    this.samples += 1;
    return overview;
  }
}

function sampled(overview: Overview): Sample {
  const { queue_totals: queues, object_totals: objects, message_stats: stats } = overview;
  return {
    ready: queues?.messages_ready ?? 0,
    unacknowledged: queues?.messages_unacknowledged ?? 0,
    connections: objects?.connections ?? 0,
    publish: stats?.publish ?? 0,
    deliver_get: stats?.deliver_get ?? 0,
    ack: stats?.ack ?? 0,
    redeliver: stats?.redeliver ?? 0,
    expired: stats?.expired ?? 0,
    dead_lettered: stats?.dead_lettered ?? 0,
    unroutable: (stats?.drop_unroutable ?? 0) + (stats?.return_unroutable ?? 0),
  };
}

/** The values of Prometheus' text format, by name with labels as they stand there. */
export function parseMetrics(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const space = line.lastIndexOf(" ");
    if (line.startsWith("#") || space < 0) continue;
    values.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return values;
}

export const broker = new BrokerState();
