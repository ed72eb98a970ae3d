// What needs attention now, and why, in plain words: from what the API says, and from nothing else.

import { type Firsts } from "./api/firsts";
import type { Cluster, Connection, Overview, Queue } from "./api/types";
import { bytes, count, plural, rate } from "./format";
import type { History } from "./live/history";
import { to } from "./router.svelte";

export interface Point {
  level: "bad" | "warn" | "note";
  text: string;
  why: string;
  /** Where to look, at most a few. */
  links: { text: string; href: string }[];
}

/** How many objects a point names. */
const NAMED_MAX = 5;
/** What the system's own buffers hold anyway: a client with more waiting for it does not read. */
const UNREAD_BYTES = 64 * 1_024;
/** Over so many samples, some half a minute. */
const GROWTH_SAMPLES = 15;
/** Fewer are ordinary. */
const GROWTH_READY_MIN = 1_000;

/** Of a queue, what is looked at; and of channels and connections. */
export const QUEUE_COLUMNS = ["name", "vhost", "messages", "messages_ready", "messages_unreadable", "consumers", "consumers_with_credit", "message_stats.ack"];
export type SeenQueue = Pick<Queue, "name" | "vhost" | "messages" | "messages_ready" | "messages_unreadable" | "consumers" | "consumers_with_credit"> & { message_stats: { ack: number } };
export type SeenConnection = Pick<Connection, "name" | "send_pend">;

interface Seen {
  overview: Overview | undefined;
  history: History;
  /** Those with the most ready messages. */
  deepest: Firsts<SeenQueue>;
  /** Those with messages that cannot be read, if there are any. */
  unreadable: SeenQueue[];
  /** Whether nothing of a queue was acknowledged between the last two answers. */
  isStanding: (queue: SeenQueue) => boolean;
  /** Those for which the most waits. */
  connections: SeenConnection[];
  /** `null`: there is none. */
  cluster: Cluster | null;
}

export function attention({ overview, history, deepest, unreadable, isStanding, connections, cluster }: Seen): Point[] {
  return [...ofNode(overview, history), ...(cluster ? ofCluster(cluster) : []), ...ofQueues(deepest, unreadable, isStanding), ...ofClients(connections)];
}

function ofCluster(cluster: Cluster): Point[] {
  const points: Point[] = [];
  const links = [{ text: "Cluster", href: to("cluster") }];
  const away = cluster.nodes.filter((node) => !node.is_connected);
  if (away.length > 0) {
    const names = away.slice(0, NAMED_MAX).map((node) => node.address).join(", ");
    points.push({ level: "warn", text: `${away.length} of ${plural(cluster.nodes.length, "node")} of Cassandra are not connected.`, why: `Replicated queues need a quorum of each message's replicas: ${names}.`, links });
  }
  if (cluster.peers.datagrams_unreadable > 0) {
    points.push({ level: "note", text: "Other front-ends say what this one cannot read.", why: `${count(cluster.peers.datagrams_unreadable)} datagrams were of another version: until all are alike more messages are delivered twice.`, links });
  }
  return points;
}

function ofNode(overview: Overview | undefined, history: History): Point[] {
  const points: Point[] = [];
  if (overview?.publishers_blocked) {
    points.push({ level: "bad", text: "Publishers are blocked.", why: `${overview.publishers_blocked}. Nothing new is taken until that is mended; consuming goes on.`, links: [] });
  }
  const unreadable = overview?.queue_totals?.messages_unreadable ?? 0;
  if (unreadable > 0) {
    points.push({ level: "bad", text: `${plural(unreadable, "message")} cannot be read from the log.`, why: `The last: ${overview?.unreadable_last ?? "unknown"}.`, links: [] });
  }
  const growth = history.growth("ready", GROWTH_SAMPLES);
  const ready = history.latest("ready") ?? 0;
  if (ready > GROWTH_READY_MIN && growth > ready / 600) {
    points.push({ level: "warn", text: `Ready messages grow by ${rate(growth)}.`, why: `More comes into the queues than leaves them: ${rate(history.latest("deliver_get"))} are delivered.`, links: [] });
  }
  const unroutable = history.latest("unroutable") ?? 0;
  if (unroutable > 0) {
    points.push({ level: "warn", text: `${rate(unroutable)} messages fit no queue.`, why: "No binding of their exchange matches, so they are dropped, or returned to a publisher that asked for that.", links: [{ text: "Exchanges", href: to("exchanges") }] });
  }
  return points;
}

function ofQueues({ items: queues, total_count: total }: Firsts<SeenQueue>, unreadable: SeenQueue[], isStanding: Seen["isStanding"]): Point[] {
  const points: Point[] = [];
  // Where the last of them holds messages too, others may that were not looked at.
  const least = queues.length < total && (queues.at(-1)?.messages_ready ?? 0) > 0 ? "At least " : "";
  const idle = queues.filter((queue) => queue.messages_ready > 0 && queue.consumers === 0);
  if (idle.length > 0) {
    const ready = idle.reduce((sum, queue) => sum + queue.messages_ready, 0);
    const has = idle.length === 1 ? "holds" : "hold";
    points.push({ level: "note", text: `${least}${plural(idle.length, "queue")} ${has} ${plural(ready, "message")} and no AMQP client consumes.`, why: "They wait for a consumer. Programs that get or receive through SQS are no consumers, so this may be as it should be.", links: named(idle) });
  }
  // Who works at full pace has no room either, but acknowledges.
  const full = queues.filter((queue) => queue.messages_ready > 0 && queue.consumers > 0 && queue.consumers_with_credit === 0 && isStanding(queue));
  if (full.length > 0) {
    points.push({ level: "warn", text: `Consumers of ${plural(full.length, "queue")} take no more.`, why: "They hold as many messages as their prefetch allows, and have acknowledged none of late: they are slow, or forget to acknowledge.", links: named(full) });
  }
  if (unreadable.length > 0) points.push({ level: "bad", text: `${plural(unreadable.length, "queue")} with messages that cannot be read.`, why: "They are set aside; the log names each.", links: named(unreadable) });
  return points;
}

function ofClients(connections: SeenConnection[]): Point[] {
  const points: Point[] = [];
  const unread = connections.filter((connection) => connection.send_pend > UNREAD_BYTES);
  if (unread.length > 0) {
    const waiting = unread.reduce((sum, connection) => sum + connection.send_pend, 0);
    points.push({ level: "warn", text: `${plural(unread.length, "client")} ${unread.length === 1 ? "does" : "do"} not read what is sent to them.`, why: `${bytes(waiting)} wait for them, beyond what the system has taken.`, links: unread.slice(0, NAMED_MAX).map((connection) => toConnection(connection.name)) });
  }
  return points;
}

function named(queues: SeenQueue[]): Point["links"] {
  const largest = [...queues].sort((a, b) => b.messages - a.messages);
  const links = largest.slice(0, NAMED_MAX).map((queue) => ({ text: queue.name, href: to("queues", queue.vhost, queue.name) }));
  if (queues.length > NAMED_MAX) links.push({ text: `and ${count(queues.length - NAMED_MAX)} more`, href: to("queues") });
  return links;
}

function toConnection(name: string): { text: string; href: string } {
  return { text: name, href: to("connections", name) };
}
