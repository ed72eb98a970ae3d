// Requests to the API of the page's own origin, as the user who has signed in.

import { reachability } from "../live/reachability.svelte";

const STORED = "quelea-authorization";
const TIMEOUT_MS = 20_000;

/** An answer that is an error, in the API's words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
  ) {
    super(reason);
  }

  get isAbsent(): boolean {
    return this.status === 404;
  }
}

/** No answer came at all: the broker is gone, or what is between us. */
export class Unreachable extends Error {}

/** Called when the password that was good is refused. */
let onSignedOut: (reason: string) => void = () => {};

export function whenSignedOut(callback: (reason: string) => void): void {
  onSignedOut = callback;
}

/** For this tab only, until it is closed: a reload needs no new sign-in, where the browser keeps it. */
let credentials = stored((session) => session.getItem(STORED));

export function hasCredentials(): boolean {
  return credentials !== null;
}

export function keepCredentials(authorization: string): void {
  credentials = authorization;
  stored((session) => session.setItem(STORED, authorization));
}

export function forgetCredentials(): void {
  credentials = null;
  stored((session) => session.removeItem(STORED));
}

let isChanging = false;

/** Does what gives the user another password: who still asks with the old one meanwhile is refused, and signs nobody out. */
export async function whileCredentialsChange(action: () => Promise<void>): Promise<void> {
  isChanging = true;
  try {
    await action();
  } finally {
    isChanging = false;
  }
}

/** A browser may be set to keep nothing for pages: then it throws. */
function stored<T>(use: (session: Storage) => T): T | null {
  try {
    return use(sessionStorage);
  } catch {
    return null;
  }
}

export function basic(name: string, password: string): string {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`;
}

/** A path below `/api` of names, each one segment. */
export function path(...names: string[]): string {
  return below("/api", names);
}

/** The same below `/quelea/v1`, where Quelea's own resources are. */
export function ownPath(...names: string[]): string {
  return below("/quelea/v1", names);
}

function below(prefix: string, names: string[]): string {
  for (const name of names) {
    // A browser takes these for steps in the path, also when they are escaped: it would ask for something else.
    if (name === "." || name === "..") throw new ApiError(400, `a browser cannot ask for an object named ${name}; use quelea admin`);
  }
  return `${prefix}/${names.map(encodeURIComponent).join("/")}`;
}

interface Options {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Instead of the one that is kept. */
  authorization?: string;
}

/** The answer's JSON; undefined if it has no body. */
export async function request<T>(url: string, options: Options = {}): Promise<T> {
  const text = await requestText(url, options);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

export async function requestText(url: string, options: Options = {}): Promise<string> {
  const kept = credentials;
  const authorization = options.authorization ?? kept ?? "";
  const headers: Record<string, string> = { authorization, ...options.headers };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: options.method ?? "GET",
      headers,
      // So that a browser neither adds a password of its own nor asks for one in a window of its own.
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      signal: options.signal ? AbortSignal.any([options.signal, timeout]) : timeout,
    });
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    reachability.failed();
    throw new Unreachable(timeout.aborted ? `no answer within ${TIMEOUT_MS / 1_000} s` : "the broker does not answer");
  }
  reachability.answered();
  if (response.ok) return text;
  const reason = reasonOf(text, response);
  if (response.status === 401 && options.authorization === undefined && kept === credentials && !isChanging) onSignedOut("The broker refuses this name and password now.");
  throw new ApiError(response.status, reason);
}

interface StreamEvent {
  event: string;
  data: string;
}

/** Server-sent events, until the server or `signal` ends them. The browser's own `EventSource` sends no password. */
export async function* openStream(url: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
  const response = await fetch(url, { headers: { authorization: credentials ?? "" }, credentials: "omit", cache: "no-store", redirect: "error", signal });
  if (!response.ok || !response.body) throw new ApiError(response.status, response.statusText);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      // The server writes the data of an event in one line.
      if (line.startsWith("event: ")) event = line.slice("event: ".length);
      else if (line.startsWith("data: ")) yield { event, data: line.slice("data: ".length) };
    }
  }
}

function reasonOf(text: string, response: Response): string {
  try {
    const parsed = JSON.parse(text) as { reason?: unknown };
    if (typeof parsed.reason === "string") return parsed.reason;
  } catch {
    // Plain text, as for a body that is no JSON.
  }
  return text.slice(0, 500) || `${response.status} ${response.statusText}`;
}

/** What to show a person of whatever was thrown. */
export function words(error: unknown): string {
  if (error instanceof ApiError) return error.status === 403 ? `Not allowed: ${error.reason}` : error.reason;
  return error instanceof Error ? error.message : String(error);
}
