/** The files that the rows of a table name: chosen here, given to the server, and put in the place of their paths. */
import { useState } from "react";
import { messageOf } from "@/api/errors";
import { writeExactly } from "@/api/exact-json";
import { placed, plainPath } from "./beside-paths";
import { takeChosen } from "./chosen-files";
import { plural } from "./format";
import { Icon } from "./icon";
import { entriesIn, readTable, type Columns, type Entry } from "./table-texts";
import type { StoredFile } from "./typed-values";

const SHOWN = 5;

function cellsOf(columns: Columns, entry: Entry): unknown[] {
  return Object.entries(columns).flatMap(([name, kind]) => (kind === "file" ? [entry[name]].flat() : []));
}

export function entriesOfTable(text: string, columns: Columns): Entry[] {
  if (/^\s*[[{]/.test(text) || !text.trim()) return entriesIn(text) ?? [];
  const read = readTable(text, columns);
  return read.flaws.length ? [] : read.entries;
}

/** The paths in columns of files: a logical file or a URL is found without its being chosen. */
export function filesNamed(entries: readonly Entry[], columns: Columns): string[] {
  const cells = entries.flatMap((entry) => cellsOf(columns, entry));
  return [...new Set(cells.filter((cell): cell is string => typeof cell === "string" && cell !== "" && !cell.includes("://") && !cell.startsWith("lfn:")))];
}

/** The rows with files, by the plain forms of their paths, in the place of these. */
export function withStored(entries: readonly Entry[], columns: Columns, stored: ReadonlyMap<string, StoredFile>): Entry[] {
  const put = (cell: unknown): unknown => (Array.isArray(cell) ? cell.map(put) : typeof cell === "string" ? (stored.get(plainPath(cell)) ?? cell) : cell);
  return entries.map((entry) => Object.fromEntries(Object.entries(entry).map(([name, cell]) => [name, columns[name] === "file" ? put(cell) : cell])));
}

interface Props {
  name: string;
  text: string;
  columns: Columns;
  store: (file: File) => Promise<StoredFile>;
  onChange: (text: string) => void;
  onStoring?: (file: string) => void;
}

export function TableFiles({ name, text, columns, store, onChange, onStoring }: Props) {
  const [busy, setBusy] = useState("");
  const [told, setTold] = useState<string[]>([]);
  const entries = entriesOfTable(text, columns);
  const named = filesNamed(entries, columns);
  if (!named.length && !told.length) return null;
  const take = async (files: readonly File[]) => {
    const { found, told: misplaced } = placed(named, files, "table");
    const stored = new Map<string, StoredFile>();
    setTold(misplaced);
    try {
      for (const [path, file] of found) {
        setBusy(file.name);
        onStoring?.(file.name);
        stored.set(path, await store(file));
      }
    } catch (error) {
      setTold([...misplaced, messageOf(error)]);
    } finally {
      setBusy("");
      onStoring?.("");
      if (stored.size) onChange(writeExactly(withStored(entries, columns, stored), 2));
    }
  };
  return (
    <div className="stack tight">
      {named.length > 0 && (
        <div className="row wrap">
          <span role="status">
            {plural(named.length, "file")} named: {named.slice(0, SHOWN).join(", ")}{named.length > SHOWN && ` and ${named.length - SHOWN} more`}. Choose {named.length === 1 ? "it" : "them"}, unless the server can read {named.length === 1 ? "it" : "them"} there.
          </span>
          <label className="button small file-button">
            <Icon name="plus" size={14} /> {busy ? `Storing ${busy}` : "Choose the files"}
            <input
              type="file"
              multiple
              aria-label={`${name}: files that the table names, from here`}
              disabled={busy !== ""}
              onChange={(event) => {
                const chosen = takeChosen(event.target);
                if (chosen.length) void take(chosen);
              }}
            />
          </label>
        </div>
      )}
      {told.map((each) => <p key={each} className="notice" role="alert">{each}</p>)}
    </div>
  );
}
