// What the API answers, as far as the console reads it: docs/operate/management-api.md.

/** Counters since the broker's start, by RabbitMQ's names. */
export interface MessageStats {
  publish: number;
  deliver: number;
  deliver_no_ack: number;
  deliver_get: number;
  get_empty: number;
  redeliver: number;
  ack: number;
  expired: number;
  dead_lettered: number;
  drop_unroutable: number;
  return_unroutable: number;
}

/** By how much a counter grew a second. Absent where there are more objects than rates are known of. */
export interface Details {
  rate: number;
}

export interface Overview {
  product_version: string;
  /** Which classes of queue there are. */
  queue_classes: ("ordered" | "replicated" | "elastic" | "datagram")[];
  /** At a front-end that has no broker there is nothing below. */
  object_totals?: { channels: number; connections: number; consumers: number; exchanges: number; queues: number };
  queue_totals?: { messages: number; messages_ready: number; messages_unacknowledged: number; messages_unreadable: number };
  message_stats?: MessageStats;
  /** Of the whole broker: who does not see all of it does not have these. */
  node?: string;
  unreadable_last?: string | null;
  publishers_blocked?: string | null;
}

export interface NodeReport {
  name: string;
  os_pid: string;
  resident_bytes: number;
  index_bytes: number;
  disk_free?: number | null;
}

export type Arguments = Record<string, unknown>;

export interface Queue {
  name: string;
  vhost: string;
  type: string;
  durable: boolean;
  exclusive: boolean;
  auto_delete: boolean;
  arguments: Arguments;
  state: string;
  messages: number;
  messages_ready: number;
  messages_unacknowledged: number;
  messages_delayed: number;
  messages_unreadable: number;
  message_bytes_ready: number;
  /** Null: there is none, or it came before the broker's start. */
  oldest_message_age_s: number | null;
  consumers: number;
  consumers_with_credit: number;
  single_active_consumer_tag: string | null;
  memory: number;
  resident_bytes: number;
  message_stats: MessageStats;
}

/** Of `/quelea/v1/queues/VHOST/NAME/moves`. */
export interface Move {
  id: string;
  state: "running" | "completed" | "cancelled" | "failed";
  destination: string | null;
  messages_moved: number;
  messages_to_move: number;
  started_at: number;
  failure: string | null;
}

export interface Exchange {
  name: string;
  vhost: string;
  type: string;
  durable: boolean;
  auto_delete: boolean;
  internal: boolean;
  arguments: Arguments;
  /** What clients published to it, and once more for each queue that it was routed to. */
  message_stats: { publish_in: number; publish_in_details?: Details; publish_out: number; publish_out_details?: Details };
}

export interface Binding {
  source: string;
  vhost: string;
  destination: string;
  destination_type: "queue" | "exchange";
  routing_key: string;
  arguments: Arguments;
  /** What one binding of the two is called. */
  properties_key: string;
}

export interface GotMessage {
  exchange: string;
  routing_key: string;
  redelivered: boolean;
  payload: string;
  payload_bytes: number;
  payload_encoding: "string" | "base64";
  properties: Record<string, unknown>;
}

export interface Connection {
  name: string;
  user: string;
  vhost: string;
  peer_host: string;
  peer_port: number | null;
  protocol: string;
  auth_mechanism: string;
  client_properties: Arguments;
  user_provided_name: string | null;
  connected_at: number;
  channels: number;
  channel_max: number;
  frame_max: number;
  timeout: number;
  /** Bytes that came from the client, and went to it. */
  recv_oct: number;
  recv_oct_details?: Details;
  send_oct: number;
  send_oct_details?: Details;
  send_pend: number;
  state: "running" | "flow" | "blocking" | "blocked";
}

export interface Channel {
  name: string;
  number: number;
  connection_details: { name: string };
  user: string;
  vhost: string;
  consumer_count: number;
  messages_unacknowledged: number;
  prefetch_count: number;
  global_prefetch_count: number;
  state: "running";
  message_stats: ChannelStats;
}

/** Of the channel's publishes, deliveries, acknowledgements and confirms. */
type ChannelStat = "publish" | "confirm" | "deliver_get" | "redeliver" | "ack";
export type ChannelStats = Record<ChannelStat, number> & { [Stat in ChannelStat as `${Stat}_details`]?: Details };

export interface Consumer {
  consumer_tag: string;
  queue: { name: string; vhost: string };
  channel_details: { name: string; number: number; connection_name: string };
  ack_required: boolean;
  exclusive: boolean;
  active: boolean;
  prefetch_count: number;
  messages_unacknowledged: number;
  messages_delivered: number;
  priority: number;
  arguments: Arguments;
}

export interface Vhost {
  name: string;
  queues: number;
  messages: number;
  messages_ready: number;
  messages_unacknowledged: number;
}

export interface User {
  name: string;
  tags: string[];
}

export interface Permission {
  user: string;
  vhost: string;
  configure: string;
  write: string;
  read: string;
}

export interface TopicPermission {
  user: string;
  vhost: string;
  exchange: string;
  write: string;
  read: string;
}

export interface Account {
  account: string;
  vhost?: string;
  queues?: number;
  access_keys: number;
}

export interface AccessKey {
  access_key_id: string;
  user: string;
  account: string;
  enabled: boolean;
  created_at?: number;
}

export interface NewAccessKey extends AccessKey {
  secret_access_key: string;
}

/** Of a relay, a producer or a whole elastic queue. */
export interface Load {
  messages_in_per_s: number;
  bytes_in_per_s: number;
  messages_out_per_s: number;
  bytes_out_per_s: number;
  cpu: number;
  latency_mean_us: number;
}

/** One of another directory has its name and owner only. */
export interface ElasticQueue extends Partial<Load> {
  name: string;
  owner: string | null;
  definition?: Record<string, unknown>;
  relays?: number | Relay[];
  producers?: number;
  listeners?: number;
  moves_under_way?: number;
  moves_done?: number;
  moves_aborted?: number;
  spent_this_hour_micros?: number;
  kpi_queue?: { load: number; deliveries_per_s: number; deliveries_per_s_max: number | null; throughput_per_s_min: number; kept: boolean } | null;
}

export interface Relay extends Load {
  id: number;
  state: string;
  address: string;
  pid: number | null;
  age_ms: number;
  dropped: number;
  spilled: number;
  left_behind: number;
  memory_bytes: number;
  memory_bytes_max: number;
  memory_percent: number;
  network_percent: number;
  producers: number;
  listeners: number;
}

export interface ElasticProducer extends Load {
  id: string;
  relay: number | null;
  moving_to: number | null;
  moved_ms_ago: number;
  connected: boolean;
  fixed: boolean;
}

export interface ElasticListener {
  id: string;
  listening: boolean;
  relays: number[];
  lagging: boolean;
  connected: boolean;
}

export interface ElasticEvent {
  number: number;
  unix_ms: number;
  queue: string;
  kind: string;
  subject: string;
  reason: string;
  notice: string | null;
}

/** Of `/quelea/v1/datagram`. */
export interface Datagram {
  address: string | null;
  messages_received: number;
  messages_published: number;
  messages_dropped: Record<string, number>;
  messages_forwarded: number;
  messages_requeued: number;
  messages_not_forwarded: number;
  forwards_active: number;
  forwards: DatagramForward[];
  listener: Record<string, number>;
}

/** A queue that is pushed to a peer. */
export interface DatagramForward {
  vhost: string;
  queue: string;
  to: string;
  mode: string;
  is_active: boolean;
  trouble: string | null;
  messages_forwarded: number;
  messages_requeued: number;
  messages_not_forwarded: number;
  messages_lost: number;
  datagrams_repeated: number;
}

export interface DatagramPeer {
  address: string;
  mailbox: number;
  mode: string;
  proven: boolean;
  silent_for_ms: number;
  messages: number;
  lost_messages: number;
  mailbox_full_messages: number;
  duplicates: number;
  repaired: number;
}

export interface Plan {
  queue: string;
  actions: (Record<string, unknown> & { action: string; reason: string })[];
  remarks: string[];
}

/** Of `/quelea/v1/replicated/ACCOUNT`. */
export interface ReplicatedQueue {
  account: string;
  name: string;
  fifo: boolean;
  created_at_ms: number;
  modified_at_ms: number;
  attributes: Record<string, string>;
  tags: Record<string, string>;
  messages_visible: number;
  messages_in_flight: number;
  messages_delayed: number;
  /** At the front-end that was asked, since its start. */
  passed_here: { sent: number; received: number; deleted: number };
  oldest_message_age_s: number;
  order_hint: { configured: string; k: number | null; duplicates_per_message: number | null };
}

/** Of `/quelea/v1/cluster`. */
export interface Cluster {
  keyspace: string;
  front_ends: ClusterFrontEnd[];
  nodes: ClusterNode[];
  clock_correction_us: number;
  requests: Record<"messages" | "upkeep" | "peers" | "sweep" | "leases", number>;
  unknown_outcomes: number;
  peers: {
    datagrams_sent: number;
    datagrams_received: number;
    datagrams_unreadable: number;
    nudges_sent: number;
    nudges_received: number;
    entries_claimed: number;
    entries_yielded: number;
    duplicates_seen: number;
  };
  messages_restored: number;
}

export interface ClusterFrontEnd {
  id: string;
  address: string | null;
  is_self: boolean;
  is_alive: boolean;
  silent_for_ms: number;
}

export interface ClusterNode {
  host_id: string;
  address: string;
  datacenter: string | null;
  rack: string | null;
  is_connected: boolean;
}

/** Of `/quelea/v1/replicated/ACCOUNT/QUEUE/messages`. */
export interface ReplicatedLook {
  messages: ReplicatedMessage[];
  /** Whether there are no others. */
  is_whole: boolean;
}

export interface ReplicatedMessage {
  message_id: string;
  /** None: the owner of the FIFO queue does not answer. */
  state: "visible" | "delayed" | "in_flight" | null;
  visible_at_ms: number | null;
  receive_count: number | null;
  sent_at_ms: number;
  first_received_at_ms: number | null;
  attributes: Record<string, { data_type: string; value_encoding: string; value: string }>;
  group_id: string | null;
  dead_letter_source: string | null;
  payload_bytes: number;
  payload_encoding: string;
  payload: string;
}

/** What SQS's ReceiveMessage answers of a message. */
export interface SqsMessage {
  MessageId: string;
  ReceiptHandle: string;
  Body: string;
  Attributes?: Record<string, string>;
  MessageAttributes?: Record<string, { DataType: string; StringValue?: string; BinaryValue?: string }>;
}

/** What SQS's ListMessageMoveTasks answers of a task. */
export interface SqsMoveTask {
  TaskHandle?: string;
  Status: string;
  SourceArn: string;
  DestinationArn?: string;
  ApproximateNumberOfMessagesMoved?: number;
  ApproximateNumberOfMessagesToMove?: number;
  FailureReason?: string;
  StartedTimestamp: number;
}
