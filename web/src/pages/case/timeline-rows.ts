/** The rows of a timeline: all of them once, page by page, and then only those that may have changed. */
import { useEffect, useRef, useState } from "react";
import { useChanges } from "@/api/live";
import { readTimeline, type Timeline, type TimelineRow } from "./queries";

const FIRST_ROWS = 400;
const NEXT_ROWS = 5000;
const AGAIN_MS = 1500;
/** What ended shortly before the last answer is read once more, for what was still being written then. */
const SLACK_MS = 5000;

export interface LoadedTimeline {
  rows: TimelineRow[];
  start: number;
  end: number;
  total: number;
  whole: boolean;
}

/** The rows with others in their places; those that are new come at the end, as they began last. */
export function mergedRows(before: readonly TimelineRow[], changed: readonly TimelineRow[]): TimelineRow[] {
  const places = new Map(before.map((row, at) => [row.item, at]));
  const rows = [...before];
  for (const row of changed) {
    const at = places.get(row.item);
    if (at === undefined) rows.push(row);
    else rows[at] = row;
  }
  return rows;
}

async function readPages(id: string, wish: { name?: string; from?: number }, signal: AbortSignal, onPage: (page: Timeline, rows: TimelineRow[]) => void): Promise<void> {
  let rows: TimelineRow[] = [];
  let page: Timeline | null = null;
  do {
    page = await readTimeline(id, { ...wish, after: page?.cursor || undefined, limit: rows.length ? NEXT_ROWS : FIRST_ROWS }, signal);
    rows = rows.concat(page.rows);
    onPage(page, rows);
  } while (page.cursor && !signal.aborted);
}

/** The first rows are drawn at once. While the case changes, what had not ended at the last answer is read again, not too
 * often; after a hole in the feed everything is. */
export function useTimeline(id: string, name: string | undefined) {
  const [loaded, setLoaded] = useState<LoadedTimeline | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [round, setRound] = useState(0);
  const known = useRef<{ id: string; name: string | undefined; end: number } | null>(null);
  const took = useRef(0);
  const due = useRef(false);
  useChanges(({ events, missed }) => {
    if (missed) known.current = null;
    if (due.current || !(missed || events.some((event) => event.case === id))) return;
    due.current = true;
    setTimeout(() => setRound((count) => count + 1), Math.max(AGAIN_MS, took.current * 10));
  });
  useEffect(() => {
    const stop = new AbortController();
    const before = known.current;
    const further = before && before.id === id && before.name === name ? before : null;
    const began = performance.now();
    const first = (page: Timeline, rows: TimelineRow[]) => {
      const whole = !page.cursor;
      setLoaded((shown) => (shown && !whole && rows.length < shown.rows.length ? shown : { rows, start: page.start, end: page.end, total: page.total, whole }));
    };
    const again = (page: Timeline) =>
      setLoaded((shown) => {
        const rows = mergedRows(shown?.rows ?? [], page.rows);
        return { rows, start: shown?.start ?? page.start, end: page.end, total: rows.length, whole: true };
      });
    const load = async () => {
      let end = 0;
      await readPages(id, { name, from: further ? Math.max(1, further.end - SLACK_MS) : undefined }, stop.signal, (page, rows) => {
        end ||= page.end;
        if (further) again(page);
        else first(page, rows);
      });
      known.current = { id, name, end };
      took.current = performance.now() - began;
      due.current = false;
      setError(null);
    };
    if (!further) setLoaded(null);
    load().catch((failed: unknown) => {
      due.current = false;
      if (!stop.signal.aborted) setError(failed);
    });
    return () => stop.abort();
  }, [id, name, round]);
  return { loaded, error };
}
