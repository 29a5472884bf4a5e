/** How numbers, times and sizes are written. Times of the API are milliseconds since 1970; 0 means "not". */

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** As the server writes it in its sentences, so that the same time reads the same everywhere: three digits below a minute,
 * then to the second and in the two greatest units: `40 ms`, `3.25 s`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "";
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toPrecision(3))} s`;
  let rest = Math.round(ms / 1000) * 1000;
  const parts: string[] = [];
  for (const [size, unit] of UNITS) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)} ${unit}`);
    rest %= size;
  }
  return parts.slice(0, 2).join(" ");
}

/** Of what is not over: in whole seconds, as it ticks. */
export function ticking(ms: number): string {
  return ms < 1000 ? "0 s" : duration(Math.floor(ms / 1000) * 1000);
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

export function ago(at: number, now: number): string {
  const ms = now - at;
  const past = ms >= 0;
  const size = Math.abs(ms);
  if (size < 5000) return past ? "just now" : "in a moment";
  // What is to come is waited for: "in 1 h" would be much too soon for 1 h 50 min.
  if (!past && size >= HOUR_MS) return `in ${duration(size - (size % MINUTE_MS))}`;
  const [unit, name] = UNITS.find(([each]) => size >= each) ?? [1000, "s"];
  const said = `${Math.floor(size / unit)} ${name}`;
  return past ? `${said} ago` : `in ${said}`;
}

const exactFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clockFormat = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dayFormat = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

export function exact(at: number): string {
  return `${exactFormat.format(at)} (${new Date(at).toISOString()})`;
}

export function clock(at: number): string {
  return clockFormat.format(at);
}

export function day(at: number): string {
  return dayFormat.format(at);
}

const momentFormats = new Map<string, Intl.DateTimeFormat>();

/** A time as a calendar and a clock of a time zone show it, the viewer's unless another is named: `Fri, Nov 20, 02:30`. The
 * year is said where it is another than today's, and seconds where there are some. */
export function moment(at: number, timeZone = zone()): string {
  const inThisYear = new Date(at).getFullYear() === new Date().getFullYear();
  const hasSeconds = at % MINUTE_MS !== 0;
  const key = [timeZone, inThisYear, hasSeconds].join();
  let format = momentFormats.get(key);
  if (!format) {
    format = new Intl.DateTimeFormat(undefined, {
      weekday: "short", month: "short", day: "numeric", year: inThisYear ? undefined : "numeric",
      hour: "2-digit", minute: "2-digit", second: hasSeconds ? "2-digit" : undefined, hourCycle: "h23",
      timeZone: isZone(timeZone) ? timeZone : "UTC",
    });
    momentFormats.set(key, format);
  }
  return format.format(at);
}

/** Whether this browser knows a time zone of that name: it may know others than the server. */
export function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat(undefined, { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

export function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

const numberFormat = new Intl.NumberFormat("en-GB");

export function number(value: number): string {
  return numberFormat.format(value);
}

/** `1 case`, `2 cases`; `many` where it is not the word with an s. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];

export function bytes(count: number): string {
  let value = count;
  let at = 0;
  while (value >= 1000 && at < SIZES.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZES[at]}`;
}

export function percent(part: number, of: number): string {
  return of ? `${Math.round((100 * part) / of)} %` : "";
}
