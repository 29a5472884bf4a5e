/** Times and sizes as people write them: `30 d`, `10 min`, `1.5 h`, `200 GB`. */

const TIMES: Record<string, number> = {
  ms: 1, s: 1000, sec: 1000, second: 1000, seconds: 1000,
  m: 60_000, min: 60_000, minute: 60_000, minutes: 60_000,
  h: 3_600_000, hour: 3_600_000, hours: 3_600_000,
  d: 86_400_000, day: 86_400_000, days: 86_400_000,
  w: 604_800_000, week: 604_800_000, weeks: 604_800_000,
};

const SIZES: Record<string, number> = {
  b: 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40,
};

function read(text: string, units: Record<string, number>): number | null {
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*/g)];
  if (!parts.length || parts.map((part) => part[0]).join("").trim() !== text.trim()) return null;
  let total = 0;
  for (const [, count, unit] of parts) {
    const size = units[(unit ?? "").toLowerCase()];
    if (size === undefined) return null;
    total += Number(count) * size;
  }
  return Math.round(total);
}

/** Milliseconds, or null if it is no time. */
export function readTime(text: string): number | null {
  return read(text, TIMES);
}

/** Bytes, or null if it is no size. */
export function readSize(text: string): number | null {
  return read(text, SIZES);
}

/** A time that can be read again: `90 min` rather than `1 h 30 min`. */
export function writeTime(ms: number): string {
  for (const [unit, size] of [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]] as const) {
    if (ms && ms % size === 0) return `${ms / size} ${unit}`;
  }
  return ms ? `${ms} ms` : "";
}

const WRITTEN = [["TB", 1e12], ["TiB", 2 ** 40], ["GB", 1e9], ["GiB", 2 ** 30], ["MB", 1e6], ["MiB", 2 ** 20], ["kB", 1e3], ["KiB", 2 ** 10]] as const;

/** A size that is read again as exactly the same: `1500 MB` rather than `1.5 GB`, `8 GiB` rather than `8.6 GB`. */
export function writeSize(bytes: number): string {
  const [unit, size] = WRITTEN.find(([, each]) => bytes && bytes % each === 0) ?? ["B", 1];
  return `${bytes / size} ${unit}`;
}

export const TIME_PROBLEM = "Write a number and a unit: 30 d, 12 h, 10 min";
export const SIZE_PROBLEM = "Write a number and a unit: 500 MB, 20 GB";
