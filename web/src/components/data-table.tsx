/** The table of the app: dense rows, only those drawn that are seen, sorted, walked by keyboard, selected for bulk acts.
 *
 * `j` and `k` walk, Enter opens, `x` selects. Columns are given in the page; widths are CSS grid tracks. */
import { createSortedRowModel, rowSortingFeature, sortFns, tableFeatures, useTable, type SortingState } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, startTransition, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type CSSProperties, type ReactNode, type RefObject, type SyntheticEvent } from "react";
import { useKeys } from "@/app/keys";
import { PHONE_PX, useNarrow } from "@/app/screen-widths";
import type { ExplainedWord } from "./explained-words";
import { Icon } from "./icon";
import { Word } from "./word";

export interface Column<Row> {
  id: string;
  /** Where it is empty, the id is told to those who hear the page. */
  header: ReactNode;
  cell: (row: Row) => ReactNode;
  /** What the column is sorted by; without it the column is not sorted. */
  value?: (row: Row) => string | number | null;
  /** A track of a CSS grid, such as `120px` or `minmax(160px, 2fr)`. */
  width?: string;
  /** The text that stands there, if the column is to be as wide as the longest of them where there is room. */
  fits?: (row: Row) => string;
  /** It says nothing of a row. Where it says nothing of any row, it is left out, and the others get its room. */
  isBlank?: (row: Row) => boolean;
  align?: "end";
  /** On a phone, and wherever the columns have no room beside each other, a row has two lines: in which of them it stands;
   * without it, it is left out there. If no column says so, the table is as on a large screen, and is moved sideways. */
  narrow?: 1 | 2;
  /** What stands there, where no heading says what it is; without it, what stands in the cell. */
  narrowCell?: (row: Row) => ReactNode;
  /** A word that explains what is in it. */
  about?: ExplainedWord;
}

export interface Sort {
  id: string;
  desc: boolean;
}

export interface DataTableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowId: (row: Row) => string;
  /** The ids of selected rows; with `onSelect` there are checkboxes. */
  selected?: ReadonlySet<string>;
  onSelect?: (selected: Set<string>) => void;
  /** Enter or a click on a row. */
  onOpen?: (row: Row) => void;
  /** The row whose details are shown. */
  at?: string;
  /** The order, if the server sorts; else the table sorts what it has. */
  sort?: Sort | null;
  onSort?: (sort: Sort | null) => void;
  /** Called when the last rows come into sight. */
  onEnd?: () => void;
  empty?: ReactNode;
  /** As high as its rows, within a page that scrolls; else it fills its place and scrolls by itself. */
  inline?: boolean;
  /** Texts of cells are shown whole, in several lines, and rows are as high as that takes. */
  wraps?: boolean;
}

const ROW_PX = 28;
const NARROW_ROW_PX = 54;
const CHAR_PX = 7.5;
const FITS_PX_MAX = 400;

/** The track of a column. One that fits its texts grows before all others, and no further than they need. */
export function trackOf<Row>({ fits, width = "minmax(80px, 1fr)" }: Pick<Column<Row>, "fits" | "width">, rows: readonly Row[]): string {
  const [, least = ""] = /^minmax\(([^,]+),/.exec(width) ?? [];
  if (!fits || !least) return width;
  const longest = rows.reduce((most, row) => Math.max(most, fits(row).length), 0);
  return `minmax(${least}, max(${least}, ${Math.min(FITS_PX_MAX, Math.ceil(longest * CHAR_PX) + 20)}px))`;
}

/** Whether these columns have no room beside each other in a box: as wide as they were found to be there. */
function useCrowded(box: HTMLDivElement | null, columns: string): boolean {
  const [width, setWidth] = useState(0);
  const [found, setFound] = useState({ columns: "", px: 0 });
  useLayoutEffect(() => {
    if (!box) return undefined;
    const observer = new ResizeObserver(() => setWidth(box.clientWidth));
    observer.observe(box);
    setWidth(box.clientWidth);
    return () => observer.disconnect();
  }, [box]);
  const isCrowded = found.columns === columns && width < found.px;
  useLayoutEffect(() => {
    if (box && width && !isCrowded && box.scrollWidth > box.clientWidth + 1) setFound({ columns, px: box.scrollWidth });
  }, [box, width, columns, isCrowded]);
  return isCrowded;
}

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel(), sortFns });

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { rows, rowId, onSelect, selected, onOpen, onEnd } = props;
  const blank = props.columns.filter((column) => column.isBlank && rows.length > 0 && rows.every(column.isBlank)).map((column) => column.id).join();
  const columns = useMemo(() => props.columns.filter((column) => !blank.split(",").includes(column.id)), [props.columns, blank]);
  const checks = onSelect ? "32px " : "";
  const wideTracks = useMemo(() => checks + columns.map((column) => trackOf(column, rows)).join(" "), [checks, columns, rows]);
  const [box, setBox] = useState<HTMLDivElement | null>(null);
  const isPhone = useNarrow(PHONE_PX);
  const isCrowded = useCrowded(box, checks + columns.map(({ id }) => id).join(" "));
  const narrow = (isPhone || isCrowded) && columns.some((column) => column.narrow);
  const rowPx = narrow ? NARROW_ROW_PX : ROW_PX;
  const [ownSort, setOwnSort] = useState<Sort | null>(null);
  const sort = props.onSort ? (props.sort ?? null) : ownSort;
  const setSort = props.onSort ?? setOwnSort;
  const [focus, setFocus] = useState(-1);
  const scroller = useRef<HTMLDivElement>(null);
  const inBox = useCallback((made: HTMLDivElement | null) => {
    scroller.current = made;
    setBox(made);
  }, []);
  const data = useMemo(() => rows.map((row) => ({ row })), [rows]);
  const definitions = useMemo(
    () => columns.map((column) => ({ id: column.id, accessorFn: (each: { row: Row }) => column.value?.(each.row) ?? null, sortUndefined: "last" as const })),
    [columns],
  );
  const sorting: SortingState = useMemo(() => (sort && !props.onSort ? [{ id: sort.id, desc: sort.desc }] : []), [sort, props.onSort]);
  const table = useTable({ features, data, columns: definitions, state: { sorting }, manualSorting: Boolean(props.onSort), getRowId: (each: { row: Row }) => rowId(each.row) });
  const shown = table.getRowModel().rows;
  // A height is that of a row wherever it stands: other rows come to its place when the list is narrowed or sorted.
  const keyAt = useCallback((index: number) => shown[index]?.id ?? index, [shown]);
  const virtual = useVirtualizer<HTMLDivElement, HTMLDivElement>({ count: shown.length, getScrollElement: () => scroller.current, estimateSize: () => rowPx, getItemKey: keyAt, overscan: 12 });
  useEffect(() => {
    virtual.measure();
    for (const row of virtual.elementsCache.values()) virtual.measureElement(row);
  }, [rowPx, virtual]);
  // The first rows are drawn in small parts, between which the page answers; later ones at once, as they come into sight.
  const [begun, setBegun] = useState(false);
  useEffect(() => startTransition(() => setBegun(true)), []);
  const drawn = begun ? virtual.getVirtualItems() : [];
  const lastDrawn = drawn.at(-1)?.index ?? -1;
  useEffect(() => {
    if (onEnd && shown.length && lastDrawn >= shown.length - 20) onEnd();
  }, [lastDrawn, shown.length, onEnd]);

  const walk = (step: number) => {
    if (!shown.length) return;
    const current = focus < 0 && props.at ? shown.findIndex((each) => each.id === props.at) : focus;
    const next = Math.min(shown.length - 1, Math.max(0, current + step));
    setFocus(next);
    virtual.scrollToIndex(next);
    const row = shown[next];
    if (props.at !== undefined && row) onOpen?.(row.original.row);
  };
  const toggle = (id: string, range: boolean) => {
    if (!onSelect) return;
    const next = new Set(selected);
    const index = shown.findIndex((each) => each.id === id);
    const add = !next.has(id);
    const ids = range && focus >= 0 ? shown.slice(Math.min(focus, index), Math.max(focus, index) + 1).map((each) => each.id) : [id];
    for (const each of ids) if (add) next.add(each);
      else next.delete(each);
    setFocus(index);
    onSelect(next);
  };
  const current = shown[focus];
  const hands = useRef<RowHands>({ open: () => undefined, toggle: () => undefined });
  useEffect(() => {
    hands.current = {
      open: (row, index) => {
        setFocus(index);
        onOpen?.(row as Row);
      },
      toggle,
    };
  });
  useKeys(props.label, [
    { keys: "j", does: "next row", run: () => walk(1) },
    { keys: "k", does: "previous row", run: () => walk(-1) },
    ...(onOpen ? [{ keys: "o", does: "open the row", run: () => current && onOpen(current.original.row) }] : []),
    ...(onSelect ? [{ keys: "x", does: "select the row", run: () => current && toggle(current.id, false) }] : []),
  ]);

  const tracks = narrow ? `${checks}minmax(0, 1fr)` : wideTracks;
  const grid: CSSProperties = { gridTemplateColumns: tracks };
  const allSelected = shown.length > 0 && selected?.size !== 0 && shown.every((each) => selected?.has(each.id));
  if (!rows.length && props.empty) return <>{props.empty}</>;
  return (
    <div
      className={["table", props.inline ? "inline" : "", props.wraps ? "wraps" : "", narrow ? "narrow" : ""].filter(Boolean).join(" ")}
      role="grid"
      aria-label={props.label}
      aria-rowcount={shown.length + 1}
      aria-multiselectable={onSelect ? true : undefined}
      ref={inBox}
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.target !== event.currentTarget) return;
        if (event.key === "ArrowDown") walk(1);
        else if (event.key === "ArrowUp") walk(-1);
        else if (event.key === "Enter" && current) onOpen?.(current.original.row);
        else if (event.key === " " && current && onSelect) toggle(current.id, event.shiftKey);
        else return;
        event.preventDefault();
      }}
    >
      <div role="rowgroup" className="table-head">
        <div role="row" className="table-row head" style={grid} aria-rowindex={1}>
          {onSelect && (
            <span role="columnheader" className="cell check">
              <input
                type="checkbox"
                aria-label="Select all rows that are loaded"
                checked={allSelected}
                onChange={() => onSelect(allSelected ? new Set() : new Set(shown.map((each) => each.id)))}
              />
            </span>
          )}
          {narrow ? (
            <span role="columnheader" className="cell">{props.label}</span>
          ) : (
            columns.map((column) => <HeaderCell key={column.id} column={column} sort={sort} onSort={setSort} />)
          )}
        </div>
      </div>
      <div role="rowgroup" className="table-body" style={{ height: virtual.getTotalSize() }}>
        {drawn.map((place) => {
          const each = shown[place.index];
          if (!each) return null;
          return (
            <TableRow
              key={each.id}
              id={each.id}
              row={each.original.row}
              columns={columns as readonly Column<unknown>[]}
              index={place.index}
              start={place.start}
              tracks={tracks}
              narrow={narrow}
              focused={place.index === focus}
              at={each.id === props.at}
              selected={onSelect ? (selected?.has(each.id) ?? false) : undefined}
              hands={hands}
              measure={props.wraps ? virtual.measureElement : undefined}
            />
          );
        })}
      </div>
    </div>
  );
}

interface RowHands {
  open: (row: unknown, index: number) => void;
  toggle: (id: string, range: boolean) => void;
}

/** Drawn anew only if something of it has changed: while a table scrolls, those rows are drawn that come into sight. */
const TableRow = memo(function TableRow(props: {
  id: string;
  row: unknown;
  columns: readonly Column<unknown>[];
  index: number;
  start: number;
  tracks: string;
  narrow: boolean;
  focused: boolean;
  at: boolean;
  /** Undefined where rows are not selected. */
  selected: boolean | undefined;
  hands: RefObject<RowHands>;
  /** Given where rows are not all of one height. */
  measure: ((row: HTMLDivElement | null) => void) | undefined;
}) {
  const { id, selected, hands } = props;
  return (
    <div
      ref={props.measure}
      role="row"
      className="table-row"
      data-row={id}
      data-index={props.index}
      data-focused={props.focused || undefined}
      data-at={props.at || undefined}
      aria-rowindex={props.index + 2}
      aria-selected={selected}
      style={{ gridTemplateColumns: props.tracks, transform: `translateY(${props.start}px)` }}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest("a, button, input, select")) return;
        hands.current.open(props.row, props.index);
      }}
    >
      {selected !== undefined && (
        <span role="gridcell" className="cell check">
          <input type="checkbox" aria-label={`Select ${id}`} checked={selected} onChange={(event) => hands.current.toggle(id, (event.nativeEvent as MouseEvent).shiftKey)} />
        </span>
      )}
      {props.narrow && (
        <span role="gridcell" className="cell lines">
          {([1, 2] as const).map((line) => (
            <span key={line} className="line">
              {props.columns.filter((column) => column.narrow === line).map((column) => <span key={column.id} onPointerEnter={tellClipped} onFocus={tellClipped}>{(column.narrowCell ?? column.cell)(props.row)}</span>)}
            </span>
          ))}
        </span>
      )}
      {!props.narrow && props.columns.map((column) => (
        <span key={column.id} role="gridcell" className={column.align === "end" ? "cell end" : "cell"} onPointerEnter={tellClipped} onFocus={tellClipped}>
          {column.cell(props.row)}
        </span>
      ))}
    </div>
  );
});

/** A cell that is too narrow for its text tells all of it where the pointer rests, or what is in it has the focus. */
function tellClipped({ currentTarget: cell }: SyntheticEvent<HTMLElement>): void {
  if (cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent ?? "";
  else cell.removeAttribute("title");
}

function HeaderCell<Row>({ column, sort, onSort }: { column: Column<Row>; sort: Sort | null; onSort: (sort: Sort | null) => void }) {
  const mine = sort?.id === column.id ? sort : null;
  const className = column.align === "end" ? "cell end" : "cell";
  if (!column.value) {
    return (
      <span role="columnheader" className={className}>
        {column.header || <span className="visually-hidden">{column.id}</span>}
        {column.about && <Word of={column.about}>?</Word>}
      </span>
    );
  }
  const next = !mine ? { id: column.id, desc: false } : mine.desc ? null : { id: column.id, desc: true };
  return (
    <span role="columnheader" className={className} aria-sort={mine ? (mine.desc ? "descending" : "ascending") : "none"}>
      <button type="button" className="sort-button" onClick={() => onSort(next)}>
        {column.header}
        {mine && <Icon name={mine.desc ? "down" : "up"} size={12} />}
      </button>
      {column.about && <Word of={column.about}>?</Word>}
    </span>
  );
}

/** What can be done with the selected rows; shown while there are some. */
export function BulkBar(props: { count: number; what: string; note?: string; onClear: () => void; children: ReactNode }) {
  if (!props.count) return null;
  return (
    <div className="bulk-bar" role="toolbar" aria-label={`${props.count} ${props.what} selected`}>
      <strong>
        {props.count} {props.what} selected
      </strong>
      {props.note && <span className="muted">{props.note}</span>}
      {props.children}
      <button type="button" className="link-button" onClick={props.onClear}>
        Clear
      </button>
    </div>
  );
}
