// SQS's operations, as the user who has signed in: docs/operate/management-api.md.

import { ownPath, request } from "./client";

/** Does one; returns its result. */
export function sqs<T = object>(account: string, action: string, body: object, signal?: AbortSignal): Promise<T> {
  return request<T>(ownPath("sqs", account, action), { method: "POST", body, ...(signal ? { signal } : {}) });
}

/** Attributes as operations take them: texts, also numbers. */
export function attributesOf(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, typeof value === "object" ? JSON.stringify(value) : String(value)]));
}

/** What operations call a queue. */
export function urlOf(account: string, name: string): string {
  return `/${account}/${name}`;
}
