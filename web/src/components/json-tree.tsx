/** A value as a tree, and lists of like objects in it as tables. Long lists show their beginning; a click on a value can mean
 * something to the page. */
import { useMemo, useState, type ReactNode } from "react";
import { EntriesTable, keysOf, likeEntries } from "./entries-table";
import { plural } from "./format";
import { Icon } from "./icon";
import { StoredFileName } from "./stored-file";
import { isStored } from "./typed-values";

export type Path = readonly (string | number)[];

interface TreeProps {
  value: unknown;
  /** Called with the path and the value, where somebody points at a value. */
  onPick?: (path: Path, value: unknown) => void;
  /** Something beside a value, such as how often it occurs. */
  beside?: (path: Path, value: unknown) => ReactNode;
  /** So many levels are open at first. */
  open?: number;
  /** These are open at first, too. */
  openPaths?: readonly string[];
  label?: string;
  /** The case, or the job, that has the value: its files are read there. */
  of?: string;
}

const SHOWN = 100;
const ROWS_OPEN = 10;

export function JsonTree({ label = "Value", ...props }: TreeProps) {
  return (
    <div className="json-tree" role="group" aria-label={label}>
      <Node {...props} path={[]} level={0} open={props.open ?? 2} />
    </div>
  );
}

function isBranch(value: unknown): value is Record<string, unknown> | unknown[] {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** A path as conditions are written: `fault.exit_code`, `inputs.files[3]`. */
export function pathText(path: Path): string {
  return path.map((part, at) => (typeof part === "number" ? `[${part}]` : at ? `.${part}` : part)).join("");
}

type NodeProps = Omit<TreeProps, "label"> & { path: Path; level: number; name?: string | number };

function Node(props: NodeProps) {
  const { value, name } = props;
  const isPicked = props.onPick !== undefined;
  // Lists may be long, and are drawn anew with all that is around them.
  const table = useMemo(() => (isPicked ? null : likeEntries(value)), [isPicked, value]);
  const keys = useMemo(() => keysOf(table ?? []), [table]);
  const isSmall = table !== null && table.length <= ROWS_OPEN;
  const [open, setOpen] = useState(props.level < (props.open ?? 2) || isSmall || (props.openPaths?.includes(pathText(props.path)) ?? false));
  const [shown, setShown] = useState(SHOWN);
  const label = name === undefined ? null : <span className={typeof name === "number" ? "json-index" : "json-name"}>{name}</span>;
  // Where somebody points at values, the parts of a file are values, too.
  if (isStored(value) && !props.onPick) {
    return (
      <div className="json-row">
        {label}
        <StoredFileName file={value} of={props.of} />
        {props.beside?.(props.path, value)}
      </div>
    );
  }
  if (!isBranch(value)) {
    return (
      <div className="json-row">
        {label}
        <Leaf {...props} />
        {props.beside?.(props.path, value)}
      </div>
    );
  }
  const entries: [string | number, unknown][] = Array.isArray(value) ? value.map((each, at) => [at, each]) : Object.entries(value);
  const inner = table ? (
    <EntriesTable numbered keys={keys} entries={table.slice(0, shown)} cell={(each, key, at) => <Node {...props} name={undefined} value={each} path={[...props.path, at, key]} level={props.level + 2} />} />
  ) : (
    entries.slice(0, shown).map(([each, inner]) => <Node key={each} {...props} name={each} value={inner} path={[...props.path, each]} level={props.level + 1} />)
  );
  const more = entries.length > shown && (
    <button type="button" className="link-button" onClick={() => setShown(shown + SHOWN * 10)}>
      {entries.length - shown} more
    </button>
  );
  // The value itself needs no line of its own.
  if (name === undefined && !Array.isArray(value)) {
    return (
      <div className="json-branch">
        {inner}
        {more}
      </div>
    );
  }
  return (
    <div className="json-branch">
      <div className="json-row">
        <button type="button" className="json-fold" aria-expanded={open} onClick={() => setOpen(!open)}>
          <Icon name={open ? "down" : "right"} size={12} />
          {name === undefined && <span className="visually-hidden">All values</span>}
          {label}
          <span className="muted">{table ? plural(table.length, "row") : Array.isArray(value) ? `${entries.length} in a list` : open ? "" : Object.keys(value).slice(0, 4).join(", ")}</span>
        </button>
        {props.beside?.(props.path, value)}
      </div>
      {open && (
        <div className={table ? "json-children json-table" : "json-children"}>
          {inner}
          {more}
        </div>
      )}
    </div>
  );
}

function Leaf({ value, path, onPick }: NodeProps) {
  const kind = value === null ? "null" : typeof value;
  const text = typeof value === "string" ? (value === "" ? '""' : value) : JSON.stringify(value);
  if (!onPick) return <span className={`json-value json-${kind}`}>{text}</span>;
  return (
    <button type="button" className={`json-value json-pick json-${kind}`} title={pathText(path)} onClick={() => onPick(path, value)}>
      {text}
    </button>
  );
}
