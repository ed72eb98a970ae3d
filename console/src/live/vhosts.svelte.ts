// The virtual hosts that forms offer: at a front-end, which has none, those that its accounts are.

import { request } from "../api/client";
import type { Account, Vhost } from "../api/types";
import { broker } from "./broker.svelte";
import { live, type Live } from "./live.svelte";

const PERIOD_MS = 30_000;

interface Named {
  name: string;
}

export function liveVhosts(): Live<Named[]> {
  return live<Named[]>(async (signal) => {
    if (await broker.hasClass("ordered")) return request<Vhost[]>("/api/vhosts", { signal });
    const accounts = await request<Account[]>("/api/accounts", { signal });
    return accounts.map(({ account, vhost }) => ({ name: vhost ?? account }));
  }, PERIOD_MS);
}
