// The virtual hosts that forms offer.

import { request } from "../api/client";
import type { Vhost } from "../api/types";
import { live, type Live } from "./live.svelte";

const PERIOD_MS = 30_000;

export function liveVhosts(): Live<Vhost[]> {
  return live<Vhost[]>((signal) => request("/api/vhosts", { signal }), PERIOD_MS);
}
