// A part of the topology as layers: what leads to an exchange or a queue, itself, and where it leads.

import type { Binding } from "./api/types";

export interface Node {
  kind: "e" | "q";
  name: string;
}

export interface Placed extends Node {
  /** Negative before the centre, 0 at it, positive behind. */
  layer: number;
  row: number;
}

export interface Edge {
  from: Placed;
  to: Placed;
  /** How many bindings, and the routing key of the first. */
  bindings: number;
  routingKey: string;
}

export interface Drawing {
  nodes: Placed[];
  edges: Edge[];
  layers: number[];
  /** Neighbours that had no room. */
  leftOut: number;
}

/** More in a layer cannot be read; who is left out is in the lists. */
const LAYER_MAX = 24;
const STEPS = 2;

export function keyOf(node: Node): string {
  return `${node.kind}${node.name}`;
}

export function neighbourhood(centre: Node, bindings: Binding[]): Drawing {
  const [into, outOf] = [grouped(bindings, target), grouped(bindings, origin)];
  const placed = new Map<string, Placed>([[keyOf(centre), { ...centre, layer: 0, row: 0 }]]);
  const rows = new Map<number, number>([[0, 1]]);
  let leftOut = 0;
  for (const direction of [-1, 1]) {
    const [edges, far] = direction < 0 ? [into, origin] : [outOf, target];
    let frontier: Node[] = [centre];
    for (let step = 1; step <= STEPS; step += 1) {
      const layer = direction * step;
      const next: Node[] = [];
      for (const binding of frontier.flatMap((node) => edges.get(keyOf(node)) ?? [])) {
        const node = far(binding);
        if (placed.has(keyOf(node))) continue;
        const row = rows.get(layer) ?? 0;
        if (row >= LAYER_MAX) {
          leftOut += 1;
          continue;
        }
        rows.set(layer, row + 1);
        placed.set(keyOf(node), { ...node, layer, row });
        next.push(node);
      }
      frontier = next;
    }
  }
  return { nodes: [...placed.values()], edges: edgesOf(placed, bindings), layers: [...rows.keys()].sort((a, b) => a - b), leftOut };
}

function edgesOf(placed: Map<string, Placed>, bindings: Binding[]): Edge[] {
  const edges = new Map<string, Edge>();
  for (const binding of bindings) {
    const [from, to] = [placed.get(keyOf(origin(binding))), placed.get(keyOf(target(binding)))];
    if (!from || !to) continue;
    const key = JSON.stringify([keyOf(from), keyOf(to)]);
    const known = edges.get(key);
    if (known) known.bindings += 1;
    else edges.set(key, { from, to, bindings: 1, routingKey: binding.routing_key });
  }
  return [...edges.values()];
}

function origin(binding: Binding): Node {
  return { kind: "e", name: binding.source };
}

function target(binding: Binding): Node {
  return { kind: binding.destination_type === "queue" ? "q" : "e", name: binding.destination };
}

function grouped(bindings: Binding[], end: (binding: Binding) => Node): Map<string, Binding[]> {
  const groups = new Map<string, Binding[]>();
  for (const binding of bindings) {
    const key = keyOf(end(binding));
    const group = groups.get(key);
    if (group) group.push(binding);
    else groups.set(key, [binding]);
  }
  return groups;
}
