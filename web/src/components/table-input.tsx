/** Below the field of a list or a table: a sheet from here, how many entries were read, and the first few of them. */
import { useId, useMemo, useState, type ReactNode } from "react";
import { isNumber, writeExactly } from "@/api/exact-json";
import "@/styles/resources.css";
import { takeChosen } from "./chosen-files";
import { bytes, plural } from "./format";
import { EntriesTable, keysOf } from "./entries-table";
import { Icon } from "./icon";
import { StoredFileName } from "./stored-file";
import { entriesIn, looksLikeTable, readTable, TABLE_BYTES_MAX, type Columns, type Entry, type TableFlaw } from "./table-texts";
import { isStored } from "./typed-values";

const SHOWN = 3;
const SHOWN_WHOLE = 10;
const COLUMNS_SHOWN = 8;

interface TableInputProps {
  name: string;
  text: string;
  columns?: Columns;
  onChange: (text: string) => void;
  /** Whether a text that is not JSON is read as a table anyway. */
  isTable: boolean;
  /** Whether the table stands for the text, which is not shown then. */
  whole?: boolean;
  /** A cell of it, where its cells can be edited. */
  cell?: (value: unknown, key: string, at: number) => ReactNode;
  children?: ReactNode;
}

export function TableInput({ name, text, columns, onChange, isTable, whole, cell, children }: TableInputProps) {
  const id = useId();
  const [refused, setRefused] = useState<{ file: string; flaws: TableFlaw[] } | null>(null);
  const take = (given: string, file: string) => {
    const read = readTable(given, columns, file);
    setRefused(read.flaws.length ? { file: file || "The lines", flaws: read.flaws } : null);
    if (!read.flaws.length) onChange(writeExactly(read.entries, 2));
  };
  const open = async (file: File) => {
    if (file.size > TABLE_BYTES_MAX) return setRefused({ file: file.name, flaws: [{ line: 0, message: `it has ${bytes(file.size)}, and a table at most ${bytes(TABLE_BYTES_MAX)}` }] });
    try {
      take(new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()), file.name);
    } catch {
      setRefused({ file: file.name, flaws: [{ line: 0, message: "it is not UTF-8 text; save the table as UTF-8" }] });
    }
  };
  const found = useMemo(() => {
    const entries = entriesIn(text);
    if (entries || !text.trim() || /^\s*[[{]/.test(text)) return { entries, flaws: [] };
    if (isTable) return readTable(text, columns);
    return { entries: null, flaws: [] };
  }, [text, columns, isTable]);
  const offers = useMemo(() => !isTable && looksLikeTable(text), [isTable, text]);
  const told = refused ?? (found.flaws.length > 1 ? { file: "", flaws: found.flaws } : null); // of one alone the field tells
  return (
    <div className="stack tight">
      <div className="row wrap">
        <label className="button small file-button" htmlFor={id}>
          <Icon name="plus" size={14} /> A table from here
          <input
            id={id}
            type="file"
            accept=".csv,.tsv"
            aria-label={`${name}: a table from here (.csv or .tsv)`}
            onChange={(event) => {
              const [file] = takeChosen(event.target);
              if (file) void open(file);
            }}
          />
        </label>
        {offers && (
          <button type="button" className="button small" onClick={() => take(text, "")}>
            Take the lines as a table
          </button>
        )}
        {children}
        {!told && found.entries && <span role="status">{plural(found.entries.length, "entry", "entries")} read</span>}
      </div>
      {told && (
        <ul className="flow-problems" aria-label={`Problems of ${name}`}>
          {told.flaws.map((each, at) => (
            <li key={at} data-severity="error">
              <span className="mono nowrap">{[told.file, each.line && `line ${each.line}`].filter(Boolean).join(", ")}</span> <span>{each.message}</span>
            </li>
          ))}
        </ul>
      )}
      {!told && found.entries && <Preview name={name} entries={found.entries} shown={whole ? SHOWN_WHOLE : SHOWN} cell={cell} />}
    </div>
  );
}

function Preview({ name, entries, shown, cell = (value) => <TableCell value={value} /> }: { name: string; entries: readonly Entry[]; shown: number; cell?: TableInputProps["cell"] }) {
  const all = keysOf(entries.slice(0, shown));
  const keys = all.slice(0, COLUMNS_SHOWN);
  const more = [entries.length > shown && `${plural(entries.length - shown, "entry", "entries")} more`, all.length > keys.length && `${plural(all.length - keys.length, "column")} more`].filter(Boolean).join(", ");
  return (
    <div className="table-preview" tabIndex={0} role="region" aria-label={`First entries of ${name}`}>
      <EntriesTable keys={keys} entries={entries.slice(0, shown)} cell={cell} />
      {more && <p className="muted">and {more}</p>}
    </div>
  );
}

/** A file is told by its name and size; the text of the field keeps all of it. */
export function TableCell({ value }: { value: unknown }): ReactNode {
  if (isStored(value)) return <StoredFileName file={value} />;
  if (Array.isArray(value) && value.length > 0 && value.every(isStored)) return value.map((each, at) => <div key={at}><StoredFileName file={each} /></div>);
  return Array.isArray(value) ? listText(value) : cellText(value);
}

/** What stands for files where a cell is read out; empty for anything else. */
export function spokenCell(value: unknown): string {
  const files = isStored(value) ? [value] : Array.isArray(value) && value.every(isStored) ? value : [];
  return files.map((each) => each.name || each.$file.slice(0, 12)).join(", ");
}

/** A list as it is read in a cell: the elements of a plain one, by commas. */
function listText(value: readonly unknown[]): string {
  return value.length && value.every((each) => typeof each !== "object" || each === null || isNumber(each)) ? value.map((each) => (each === null ? "null" : String(each))).join(", ") : cellText(value);
}

function cellText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? writeExactly(value) : String(value);
}
