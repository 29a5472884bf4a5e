/** The end of a list that shows its first rows only: says how many more there are, and unfolds them. */
import { useState, type ReactNode } from "react";
import { number } from "./format";

interface Props<Row> {
  rows: readonly Row[];
  shown: number;
  /** What a row is; `at` is its place. */
  children: (row: Row, at: number) => ReactNode;
  /** What the button stands in: an entry of a list, unless it says otherwise. */
  end?: (button: ReactNode) => ReactNode;
}

export function FirstRows<Row>({ rows, shown, children, end = (button) => <li>{button}</li> }: Props<Row>) {
  const [all, setAll] = useState(false);
  const more = rows.length - shown;
  return (
    <>
      {(all ? rows : rows.slice(0, shown)).map(children)}
      {more > 0 && end(
        <button type="button" className="link-button" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "show less" : `and ${number(more)} more`}
        </button>,
      )}
    </>
  );
}
