/** A field for a value of a declared type: of a flow's input, or of what a person is asked for. */
import { useId, useState } from "react";
import { api, ask } from "@/api/client";
import { messageOf } from "@/api/errors";
import { bytes } from "./format";
import { AreaField, SelectField, TextField } from "./form-fields";
import { Icon } from "./icon";
import { isStored, type Draft, type StoredFile, type Wanted } from "./typed-values";

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
  "": "Text; what is JSON is taken as such.",
};

export function ValueField({ name, wanted, isSize, draft, onChange, onStoring, problem }: ValueProps) {
  const type = wanted.type ?? "";
  const text = typeof draft === "string" ? draft : "";
  const hint = [wanted.description && /[.!?]$/.test(wanted.description) ? wanted.description : wanted.description && `${wanted.description}.`, isSize && type !== "number" ? "A size, such as 200 MB." : HOW[type]].filter(Boolean).join(" ");
  const common = { label: name, hint: hint || undefined, problem, required: wanted.required, onChange, value: text };
  if (type === "boolean") {
    const unset = wanted.default === undefined || wanted.default === null ? "Choose" : `As declared: ${wanted.default ? "yes" : "no"}`;
    const choices: [string, string][] = [["true", "Yes"], ["false", "No"]];
    return <SelectField {...common} choices={typeof wanted.default === "boolean" ? choices : [["", unset], ...choices]} />;
  }
  if (type === "file" || type === "files") return <FilesField {...{ name, wanted, draft, onChange, onStoring, problem }} hint={hint} />;
  if (type === "list" || type === "map" || type === "table" || text.includes("\n")) {
    return <AreaField {...common} mono rows={Math.min(10, Math.max(3, text.split("\n").length))} />;
  }
  // A browser's own number field keeps to itself what is no number, and the form would take the field as empty.
  return <TextField {...common} inputMode={type === "number" ? "decimal" : undefined} />;
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
  const store = async (files: FileList) => {
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
      {stored.length > 0 && <strong>{name}</strong>}
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
        <input id={id} type="file" aria-label={`${name}: ${many ? "files" : "a file"} from here`} multiple={many} disabled={busy !== ""} onChange={(event) => event.target.files?.length && void store(event.target.files)} />
      </label>
    </div>
  );
}
