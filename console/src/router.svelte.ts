// Which page is shown: the part of the address behind `#`, as names between slashes.

class Router {
  segments = $state.raw<string[]>([]);

  constructor() {
    this.#read();
    addEventListener("hashchange", () => this.#read());
  }

  /** The page's kind: `queues` of `#/queues/%2F/orders`. */
  get page(): string {
    return this.segments[0] ?? "";
  }

  /** Its parameters. */
  get names(): string[] {
    return this.segments.slice(1);
  }

  #read(): void {
    this.segments = location.hash.replace(/^#\/?/, "").split("/").filter((segment) => segment !== "").map(decoded);
  }
}

/** Names may be any text: `%` of an address that somebody has typed is itself. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export const router = new Router();

/** The address of a page. An empty name has a segment too. */
export function to(...names: string[]): string {
  return `#/${names.map((name) => encodeURIComponent(name) || "~").join("/")}`;
}

export function go(...names: string[]): void {
  location.hash = to(...names);
}
