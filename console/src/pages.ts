// All pages: where each stands, and who sees it in the menu.

import type { Component } from "svelte";
import Accounts from "./pages/Accounts.svelte";
import Cluster from "./pages/Cluster.svelte";
import Connection from "./pages/Connection.svelte";
import Connections from "./pages/Connections.svelte";
import Datagram from "./pages/Datagram.svelte";
import Elastic from "./pages/Elastic.svelte";
import ElasticQueue from "./pages/ElasticQueue.svelte";
import Exchange from "./pages/Exchange.svelte";
import Exchanges from "./pages/Exchanges.svelte";
import Overview from "./pages/Overview.svelte";
import Queue from "./pages/Queue.svelte";
import Queues from "./pages/Queues.svelte";
import ReplicatedQueue from "./pages/ReplicatedQueue.svelte";
import Topology from "./pages/Topology.svelte";
import User from "./pages/User.svelte";
import Users from "./pages/Users.svelte";
import Vhosts from "./pages/Vhosts.svelte";
import You from "./pages/You.svelte";

interface Page {
  path: string;
  /** How many names may follow. */
  names: number[];
  title: string;
  /** Whether it stands in the menu. */
  menu?: boolean;
  for?: "administrator" | "monitoring";
  /** Whether a front-end without a broker has it too. */
  frontEnd?: boolean;
  /** Where there are no queues of this class, it stands in no menu. */
  ofClass?: "replicated";
  /** Takes `names`, where names may follow. */
  // A component without properties is of no type that one with properties has.
  component: Component<any>;
}

export const PAGES: Page[] = [
  { path: "", names: [0], title: "Overview", menu: true, frontEnd: true, component: Overview },
  { path: "queues", names: [0], title: "Queues", menu: true, frontEnd: true, component: Queues },
  { path: "queues", names: [2], title: "Queue", component: Queue },
  { path: "replicated", names: [2], title: "Replicated queue", component: ReplicatedQueue },
  { path: "exchanges", names: [0], title: "Exchanges", menu: true, component: Exchanges },
  { path: "exchanges", names: [2], title: "Exchange", component: Exchange },
  { path: "topology", names: [3], title: "Topology", component: Topology },
  { path: "connections", names: [0], title: "Connections", menu: true, component: Connections },
  { path: "connections", names: [1], title: "Connection", component: Connection },
  { path: "elastic", names: [0], title: "Elastic", menu: true, for: "monitoring", component: Elastic },
  { path: "elastic", names: [1], title: "Elastic queue", component: ElasticQueue },
  { path: "datagram", names: [0], title: "Datagram", menu: true, for: "monitoring", component: Datagram },
  { path: "cluster", names: [0], title: "Cluster", menu: true, for: "monitoring", frontEnd: true, ofClass: "replicated", component: Cluster },
  { path: "accounts", names: [0], title: "Accounts", menu: true, frontEnd: true, component: Accounts },
  { path: "users", names: [0], title: "Users", menu: true, for: "administrator", frontEnd: true, component: Users },
  { path: "users", names: [1], title: "User", component: User },
  { path: "vhosts", names: [0], title: "Virtual hosts", menu: true, component: Vhosts },
  { path: "you", names: [0], title: "You", component: You },
];

export function titleOf(path: string, names: string[]): string {
  const title = PAGES.find((page) => page.path === path && page.names.includes(names.length))?.title ?? "Not found";
  const name = names.at(-1);
  return name === undefined ? title : `${name.slice(0, 60)} – ${title}`;
}
