// Numbers, times and names for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function count(value: number | null | undefined): string {
  return value == null ? "–" : whole.format(value);
}

/** Of many: 12,345 is 12.3K. */
export function brief(value: number | null | undefined): string {
  return value == null ? "–" : Math.abs(value) < 10_000 ? whole.format(value) : short.format(value);
}

export function rate(value: number | null | undefined): string {
  if (value == null) return "–";
  const digits = value > 0 && value < 10 ? value.toFixed(1) : brief(value);
  return `${digits}/s`;
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let scaled = value;
  while (scaled >= 1_024 && unit < units.length - 1) {
    scaled /= 1_024;
    unit += 1;
  }
  return `${scaled < 10 && unit > 0 ? scaled.toFixed(1) : whole.format(scaled)} ${units[unit]}`;
}

export function bytesRate(value: number | null | undefined): string {
  return value == null ? "–" : `${bytes(value)}/s`;
}

export function clock(ms: number): string {
  return time.format(ms);
}

export function when(ms: number | null | undefined): string {
  return ms ? moment.format(ms) : "–";
}

export function duration(ms: number): string {
  const s = Math.round(ms / 1_000);
  if (s < 120) return `${s} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  if (s < 172_800) return `${Math.round(s / 3_600)} h`;
  return `${Math.round(s / 86_400)} d`;
}

/** `1 queue`, `2 queues`. */
export function plural(number: number, noun: string): string {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** A value of an argument table. */
export function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The default exchange has no name. */
export function exchangeName(name: string): string {
  return name === "" ? "(default)" : name;
}
