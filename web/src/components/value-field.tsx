/** A field for a value of a declared type: of a flow's input, or of what a person is asked for. */
import { isNumber } from "@/api/exact-json";
import { useId, useState } from "react";
import { api, ask } from "@/api/client";
import { messageOf } from "@/api/errors";
import { takeChosen } from "./chosen-files";
import { cellDraft, useEditedCells } from "./cell-values";
import { EditCell } from "./edit-cell";
import { likeEntries } from "./entries-table";
import { bytes } from "./format";
import { NeededMark } from "./field";
import { AreaField, SelectField, TextField } from "./form-fields";
import { Icon } from "./icon";
import { TableFiles } from "./table-files";
import { spokenCell, TableCell, TableInput } from "./table-input";
import { entriesIn } from "./table-texts";
import { isStored, readText, type Draft, type StoredFile, type Wanted } from "./typed-values";

interface ValueProps {
  name: string;
  wanted: Wanted;
  /** Whether jobs take it as a size, such as that of their memory. */
  isSize?: boolean;
  draft: Draft;
  onChange: (draft: Draft) => void;
  /** Told the name of each file that is being given to the server, and `""` when none is any more. */
  onStoring?: (file: string) => void;
  problem?: string | null;
}

const HOW: Record<string, string> = {
  list: "One a line, or a list in JSON.",
  map: 'JSON, such as {"name": 1}.',
  table: "Lines of cells, the names first, as from a spreadsheet; or a list of maps in JSON.",
  number: "A number.",
};

/** What is read of a value whose type nobody has declared. */
export function takenAs(text: string): string {
  const read = text.trim() === "" ? { value: "" } : readText({}, text);
  if ("problem" in read) return "";
  const { value } = read;
  if (isNumber(value)) return "Taken as a number; in quotes it is text.";
  if (typeof value === "string") return value === text ? "" : `Taken as the text ${value}`;
  return Array.isArray(value) ? "Taken as a list in JSON." : typeof value === "object" && value !== null ? "Taken as a map in JSON." : `Taken as ${value === null ? "nothing" : value ? "yes" : "no"} (${String(value)}); in quotes it is text.`;
}

export function ValueField({ name, wanted, isSize, draft, onChange, onStoring, problem }: ValueProps) {
  const type = wanted.type ?? "";
  const text = typeof draft === "string" ? draft : "";
  const about = wanted.description && (/[.!?]$/.test(wanted.description) ? wanted.description : `${wanted.description}.`);
  const hint = [about, isSize && type !== "number" ? "A size, such as 200 MB." : type ? HOW[type] : takenAs(text)].filter(Boolean).join(" ");
  const common = { label: name, hint: hint || undefined, problem, required: wanted.required, onChange, value: text };
  if (type === "boolean") {
    const unset = wanted.default === undefined || wanted.default === null ? "Choose" : `As declared: ${wanted.default ? "yes" : "no"}`;
    const choices: [string, string][] = [["true", "Yes"], ["false", "No"]];
    return <SelectField {...common} choices={typeof wanted.default === "boolean" ? choices : [["", unset], ...choices]} />;
  }
  if (type === "file" || type === "files") return <FilesField {...{ name, wanted, draft, onChange, onStoring, problem }} hint={hint} />;
  if (type === "list" || type === "map" || type === "table" || text.includes("\n")) {
    if (type === "list" || type === "table") return <ListField {...common} about={about} columns={wanted.columns} isTable={type === "table"} onStoring={onStoring} />;
    return <TextLines {...common} />;
  }
  // A browser's own number field keeps to itself what is no number, and the form would take the field as empty.
  return <TextField {...common} inputMode={type === "number" ? "decimal" : undefined} />;
}

interface LinesProps {
  label: string;
  hint?: string;
  problem?: string | null;
  required?: boolean;
  value: string;
  onChange: (text: string) => void;
}

function TextLines(props: LinesProps) {
  return <AreaField {...props} mono rows={Math.min(10, Math.max(3, props.value.split("\n").length))} />;
}

/** A list or a table, as text or from a sheet. What is a table already is shown as one, until somebody edits it as text. */
function ListField({ about, columns, isTable, onStoring, ...props }: LinesProps & { about?: string; columns: Wanted["columns"]; isTable: boolean; onStoring?: (file: string) => void }) {
  const id = useId();
  const [asText, setAsText] = useState(() => !likeEntries(entriesIn(props.value)));
  const { shown, isWrong, edit, wrongAt } = useEditedCells(props.value, columns ?? {}, props.onChange);
  const isText = asText || (Boolean(props.problem) && !isWrong);
  const give = (text: string, isSheet: boolean) => {
    setAsText(!isSheet);
    props.onChange(text);
  };
  const cell = (value: unknown, key: string, at: number) => {
    const wrong = wrongAt(at, key);
    return <EditCell label={`${key} of entry ${at + 1} of ${props.label}`} text={wrong?.text ?? cellDraft(value)} spoken={spokenCell(value)} problem={wrong?.problem} onChange={(text) => edit(at, key, text)}>{wrong?.text ?? <TableCell value={value} />}</EditCell>;
  };
  return (
    <div className="stack tight" role={isText ? undefined : "group"} aria-labelledby={isText ? undefined : id}>
      {isText ? <TextLines {...props} onChange={(text) => give(text, false)} /> : <strong id={id}>{props.label}{props.required && <NeededMark />}</strong>}
      <TableInput name={props.label} text={shown} columns={columns} isTable={isTable} whole={!isText} onChange={(text) => give(text, true)} cell={isText ? undefined : cell}>
        {!isText && <button type="button" className="button small" aria-label={`${props.label}: edit as text`} onClick={() => give(shown, false)}>Edit as text</button>}
      </TableInput>
      {isTable && columns && <TableFiles name={props.label} text={shown} columns={columns} store={storeFile} onChange={(text) => give(text, true)} onStoring={onStoring} />}
      {!isText && about && <p className="field-hint">{about}</p>}
    </div>
  );
}

async function digestOf(file: File): Promise<string> {
  if (!globalThis.crypto?.subtle) {
    throw new Error("this browser gives files only to pages over HTTPS or on this machine; write the path or the logical name of the file instead");
  }
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Give a file to the server, unless it has its content already. */
export async function storeFile(file: File): Promise<StoredFile> {
  const sha256 = await digestOf(file);
  await ask(
    api.PUT("/api/v1/files/{sha256}", {
      params: { path: { sha256 }, query: { name: file.name } },
      body: file as never,
      bodySerializer: (body: unknown) => body as Blob,
      headers: { "Content-Type": "application/octet-stream" },
    }),
  );
  return { $file: sha256, bytes: file.size, name: file.name };
}

/** Files of the same content are still others, by their names. */
function keyOf(file: StoredFile): string {
  return `${file.$file} ${file.name}`;
}

function FilesField({ name, wanted, draft, onChange, onStoring, problem, hint }: ValueProps & { hint: string }) {
  const id = useId();
  const many = wanted.type === "files";
  const [busy, setBusy] = useState("");
  const tellStoring = (file: string) => {
    setBusy(file);
    onStoring?.(file);
  };
  const [refused, setRefused] = useState<string | null>(null);
  const stored = Array.isArray(draft) ? draft.filter(isStored) : [];
  const store = async (files: readonly File[]) => {
    if (!files.length) return;
    setRefused(null);
    const given = many ? [...stored] : [];
    try {
      for (const file of files) {
        tellStoring(file.name);
        const found = await storeFile(file);
        if (!given.some((each) => keyOf(each) === keyOf(found))) given.push(found);
      }
      onChange(given);
    } catch (error) {
      setRefused(messageOf(error));
    } finally {
      tellStoring("");
    }
  };
  return (
    <div className="stack tight">
      {stored.length === 0 && (
        <TextField
          label={name}
          hint={`${hint} ${many ? "Paths, patterns or logical names, one a line" : "A path or a logical name"} that the server knows, or a file from here:`.trim()}
          problem={refused ?? problem}
          required={wanted.required}
          mono
          value={typeof draft === "string" ? draft : ""}
          onChange={onChange}
        />
      )}
      {stored.length > 0 && <strong>{name}{wanted.required && <NeededMark />}</strong>}
      {stored.map((file) => (
        <div key={keyOf(file)} className="row">
          <Icon name="file" size={14} />
          <span className="clip">{file.name}</span>
          <span className="muted nowrap">{bytes(file.bytes)}</span>
          <button type="button" className="icon-button" aria-label={`Leave out ${file.name}`} disabled={busy !== ""} onClick={() => onChange(stored.length > 1 ? stored.filter((each) => each !== file) : "")}>
            <Icon name="close" size={14} />
          </button>
        </div>
      ))}
      <label className="button small file-button" htmlFor={id}>
        <Icon name="plus" size={14} /> {busy ? `Storing ${busy}` : many ? "Files from here" : "A file from here"}
        <input id={id} type="file" aria-label={`${name}: ${many ? "files" : "a file"} from here`} multiple={many} disabled={busy !== ""} onChange={(event) => void store(takeChosen(event.target))} />
      </label>
    </div>
  );
}
