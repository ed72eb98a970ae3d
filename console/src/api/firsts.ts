// The first of a list in an order that the server makes: what a page needs of very many objects costs the same however many there are.

import { request } from "./client";

/** Of one answer. */
const FIRSTS = 100;

export interface Firsts<T> {
  items: T[];
  /** How many there are at all. */
  total_count: number;
}

export const NONE: Firsts<never> = { items: [], total_count: 0 };

/** The first hundred by a field, with these columns alone. */
export function firstsOf<T>(list: string, by: { sort: string; reverse?: boolean; columns: string[] }, signal: AbortSignal): Promise<Firsts<T>> {
  const query = `page=1&page_size=${FIRSTS}&sort=${by.sort}&sort_reverse=${by.reverse ?? false}&columns=${by.columns.join(",")}`;
  return request<Firsts<T>>(`${list}?${query}`, { signal });
}
