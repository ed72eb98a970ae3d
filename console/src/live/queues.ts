// Queues of all classes, as rows of one table.

import { ownPath, path, request } from "../api/client";
import type { Account, ElasticQueue, Queue, ReplicatedQueue } from "../api/types";
import { to } from "../router.svelte";
import { session } from "../session.svelte";
import { broker } from "./broker.svelte";
import { RatesOfMany } from "./rates";

/** A row. What a class does not have is undefined. */
export interface AnyQueue {
  name: string;
  /** The virtual host; of a replicated queue, that of its account, if there is one, or else the account. */
  vhost: string;
  class: "ordered" | "replicated" | "elastic";
  features: string;
  href: string;
  ready?: number;
  unacknowledged?: number;
  in?: number;
  out?: number;
  consumers?: number;
}

/** Of all accounts together: each costs requests to Cassandra. */
const REPLICATED_MAX = 1_000;
/** In one answer. */
const PAGE = 100;

const rates = new RatesOfMany<ListedQueue>(
  (queue) => JSON.stringify([queue.vhost, queue.name]),
  ({ message_stats: { publish, deliver_get } }) => ({ publish, deliver_get, ack: 0 }),
);
/** What passes at the front-end that is asked. */
const replicatedRates = new RatesOfMany<ReplicatedQueue>(
  (queue) => JSON.stringify([queue.account, queue.name, queue.created_at_ms]),
  ({ passed_here: { sent, received, deleted } }) => ({ publish: sent, deliver_get: received, ack: deleted }),
);

/** What a row shows: all that is known of ten thousand queues would be 13 MB. */
const COLUMNS = ["name", "vhost", "durable", "exclusive", "auto_delete", "arguments", "messages_ready", "messages_unacknowledged", "consumers", "message_stats.publish", "message_stats.deliver_get"];
type ListedQueue = Pick<Queue, "name" | "vhost" | "durable" | "exclusive" | "auto_delete" | "arguments" | "messages_ready" | "messages_unacknowledged" | "consumers"> & {
  message_stats: Pick<Queue["message_stats"], "publish" | "deliver_get">;
};

/** The broker's own; none at a front-end, which has none. */
export async function orderedQueues(signal: AbortSignal): Promise<AnyQueue[]> {
  if (!(await broker.hasClass("ordered"))) return [];
  const found = await request<ListedQueue[]>(`/api/queues?columns=${COLUMNS.join(",")}`, { signal });
  rates.take(found, Date.now());
  return found.map((queue) => {
    const words = [queue.durable ? "durable" : "transient", queue.exclusive ? "exclusive" : "", queue.auto_delete ? "auto-delete" : "", ...Object.keys(queue.arguments)];
    return {
      name: queue.name,
      vhost: queue.vhost,
      class: "ordered",
      features: words.filter(Boolean).join(", "),
      href: to("queues", queue.vhost, queue.name),
      ready: queue.messages_ready,
      unacknowledged: queue.messages_unacknowledged,
      in: rates.of(queue).in,
      out: rates.of(queue).out,
      consumers: queue.consumers,
    };
  });
}

/** Those in Cassandra of all accounts that the user sees. */
export async function replicatedQueues(signal: AbortSignal): Promise<AnyQueue[]> {
  if (!(await broker.hasClass("replicated"))) return [];
  const found: [queue: ReplicatedQueue, vhost: string][] = [];
  for (const { account, vhost } of await request<Account[]>("/api/accounts", { signal })) {
    for await (const queue of pagesOf(account, signal)) {
      if (found.length < REPLICATED_MAX) found.push([queue, vhost ?? account]);
      else break;
    }
  }
  replicatedRates.take(found.map(([queue]) => queue), Date.now());
  return found.map(([queue, vhost]) => ({
    name: queue.name,
    vhost,
    class: "replicated",
    features: [queue.fifo ? "FIFO" : `order hint ${queue.order_hint.configured}`, queue.attributes["RedrivePolicy"] ? "dead-letters" : ""].filter(Boolean).join(", "),
    href: to("replicated", queue.account, queue.name),
    ready: queue.messages_visible,
    unacknowledged: queue.messages_in_flight,
    in: replicatedRates.of(queue).in,
    out: replicatedRates.of(queue).out,
  }));
}

async function* pagesOf(account: string, signal: AbortSignal): AsyncGenerator<ReplicatedQueue> {
  let after = "";
  for (;;) {
    const query = `?limit=${PAGE}${after === "" ? "" : `&after=${encodeURIComponent(after)}`}`;
    const page = await request<ReplicatedQueue[]>(`${ownPath("replicated", account)}${query}`, { signal });
    yield* page;
    const last = page.at(-1);
    // One that went away in between makes a page shorter, so that only an empty one is the end.
    if (last === undefined) return;
    after = last.name;
  }
}

/** Those that relays keep in memory, for whoever sees all virtual hosts. */
export async function elasticQueues(signal: AbortSignal): Promise<AnyQueue[]> {
  if (!session.isMonitoring || !(await broker.hasClass("elastic"))) return [];
  const found = await request<ElasticQueue[]>(path("elastic", "queues"), { signal });
  return found.map((queue) => ({
    name: queue.name,
    vhost: "",
    class: "elastic",
    features: `${Number(queue.relays ?? 0)} relays`,
    href: to("elastic", queue.name),
    in: queue.messages_in_per_s ?? 0,
    out: queue.messages_out_per_s ?? 0,
    consumers: queue.listeners ?? 0,
  }));
}
