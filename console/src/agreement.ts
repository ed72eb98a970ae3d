// The agreement of an elastic queue as fields of a form: what each is, by the API's own description of it.

import { ApiError, request } from "./api/client";

export interface Field {
  name: string;
  description: string;
  unit: string;
  /** Whole numbers from and to; absent where it is text. */
  least?: number;
  most?: number;
  /** What may be chosen. */
  choices?: string[];
  /** A list of words, with commas. */
  isList: boolean;
}

export interface Group {
  title: string;
  fields: Field[];
}

interface Schema {
  description?: string;
  type?: string;
  enum?: string[];
  minimum?: number;
  maximum?: number;
}

/** What belongs together; what the API has beyond that stands in the last group. */
const GROUPS: [title: string, names: string[]][] = [
  ["Relays", ["relays_min", "relays_max", "policy", "relocation"]],
  ["What one relay may carry; 0: no limit", ["messages_in_per_s_max", "bytes_in_per_s_max", "bytes_out_per_s_max", "latency_us_max", "clients_max", "memory_percent_max", "network_percent_max", "priorities"]],
  ["What the queue as a whole can always deliver; 0: no promise", ["throughput_per_s_min", "throughput_producers", "throughput_listeners", "throughput_payload_bytes"]],
  ["Cost", ["budget_per_hour_micros", "relays_without_budget"]],
  ["When a relay is removed", ["scale_in_after_ms", "scale_in_after_out_ms", "scale_in_apart_ms", "scale_in_idle_ms"]],
  ["Messages", ["acknowledge", "keep", "slow", "ring_bytes_max"]],
];
const OTHERS = "Others";

/** By what the name says: units stand in it. The first that fits. */
const UNITS: [part: RegExp, unit: string][] = [
  [/bytes_\w+_per_s/, "bytes a second"],
  [/_per_s_/, "messages a second"],
  [/_bytes/, "bytes"],
  [/_us_/, "microseconds"],
  [/_ms$/, "milliseconds"],
  [/_percent_/, "percent"],
  [/_micros$/, "millionths"],
  [/clients_/, "clients"],
  [/_producers$/, "producers"],
  [/_listeners$/, "listeners"],
  [/^relays_/, "relays"],
];

/** Asked for once: it does not change while the broker runs. */
let asked: Promise<Group[]> | undefined;

export function agreementGroups(): Promise<Group[]> {
  asked ??= ask().catch((error: unknown) => {
    asked = undefined;
    throw error;
  });
  return asked;
}

async function ask(): Promise<Group[]> {
  const document = await request<{ components: { schemas: Record<string, { properties: Record<string, Schema> }> } }>("/quelea/v1/openapi.json");
  const properties = document.components.schemas["ElasticDefinition"]?.properties ?? {};
  const named = new Set(GROUPS.flatMap(([, names]) => names));
  const groups: typeof GROUPS = [...GROUPS, [OTHERS, Object.keys(properties).filter((name) => !named.has(name))]];
  return groups
    .map(([title, names]) => ({ title, fields: names.flatMap((name) => (properties[name] ? [fieldOf(name, properties[name])] : [])) }))
    .filter((group) => group.fields.length > 0);
}

function fieldOf(name: string, schema: Schema): Field {
  const isNumber = schema.type === "integer";
  const most = Math.min(schema.maximum ?? Infinity, Number.MAX_SAFE_INTEGER);
  return {
    name,
    description: schema.description ?? "",
    unit: isNumber ? (UNITS.find(([part]) => part.test(name))?.[1] ?? "") : "",
    ...(isNumber ? { least: schema.minimum ?? 0, most } : {}),
    ...(schema.enum ? { choices: schema.enum } : {}),
    isList: schema.type === "array",
  };
}

/** What is typed into a field for a value, and the other way round. */
export function typedOf(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : String(value ?? "");
}

export function valueOf(field: Field, typed: string): unknown {
  if (field.isList) return typed.split(",").map((word) => word.trim()).filter(Boolean);
  return field.least === undefined ? typed : Number(typed);
}

/** Which field a refusal is about, and what it says of it: the API names the field first. */
export function refusalOf(error: unknown, groups: Group[]): { name: string; text: string } | undefined {
  if (!(error instanceof ApiError) || error.status !== 400) return undefined;
  const [name = "", ...rest] = error.reason.split(": ");
  const isKnown = groups.some((group) => group.fields.some((field) => field.name === name));
  return isKnown && rest.length > 0 ? { name, text: rest.join(": ") } : undefined;
}
