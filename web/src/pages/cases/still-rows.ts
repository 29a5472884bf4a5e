/** Live but still: while the pointer is over the table no row moves, comes or goes; what came is counted. */
import { useRef, useState } from "react";

export interface Still<Row> {
  rows: readonly Row[];
  fresh: number;
  /** Take in what came. */
  adopt: () => void;
  onPointerEnter: () => void;
  onPointerLeave: () => void;
}

/** `question` is what was asked: another question is another list. */
export function useStillRows<Row>(rows: readonly Row[], idOf: (row: Row) => string, question: string): Still<Row> {
  const [over, setOver] = useState(false);
  const [, redraw] = useState(0);
  const kept = useRef<{ question: string; rows: readonly Row[] }>({ question, rows });
  const before = kept.current;
  let fresh = 0;
  if (!over || before.question !== question || before.rows.length === 0) {
    kept.current = { question, rows };
  } else if (before.rows !== rows) {
    const now = new Map(rows.map((row) => [idOf(row), row]));
    const known = new Set(before.rows.map(idOf));
    const lastKnown = rows.findLastIndex((row) => known.has(idOf(row)));
    const further = rows.slice(lastKnown + 1);
    fresh = rows.slice(0, lastKnown + 1).filter((row) => !known.has(idOf(row))).length;
    const held = before.rows.map((row) => now.get(idOf(row)) ?? row);
    kept.current = { question, rows: fresh || held.length !== rows.length ? [...held, ...(lastKnown >= 0 ? further : [])] : held };
  }
  return {
    rows: kept.current.rows,
    fresh,
    adopt: () => {
      kept.current = { question, rows };
      redraw((count) => count + 1);
    },
    onPointerEnter: () => setOver(true),
    onPointerLeave: () => setOver(false),
  };
}
