/** Other files for the inputs of a job, by their paths in its folder: a file from here, which is stored at once, or where the
 * server or the pilot finds one. */
import { useState } from "react";
import { messageOf } from "@/api/errors";
import { takeChosen } from "@/components/chosen-files";
import { Icon } from "@/components/icon";
import { storeFile } from "@/components/value-field";

interface Row {
  id: number;
  path: string;
  given: unknown;
}

interface Props {
  ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean | undefined };
  value: Record<string, unknown>;
  onChange: (value: Record<string, unknown>) => void;
}

export function SourcesInput({ ids, value, onChange }: Props) {
  const [rows, setRows] = useState<Row[]>(() => [...Object.entries(value), ["", ""] as const].map(([path, given], id) => ({ id, path, given })));
  const [told, setTold] = useState("");
  const put = (next: Row[]) => {
    setRows(next);
    onChange(Object.fromEntries(next.filter((row) => row.path && row.given !== "").map((row) => [row.path, row.given])));
  };
  const change = (id: number, part: Partial<Row>) => put(rows.map((row) => (row.id === id ? { ...row, ...part } : row)));
  const upload = async (row: Row, file: File) => {
    setTold(`Storing ${file.name} …`);
    try {
      const given = await storeFile(file);
      change(row.id, { given, path: row.path || file.name });
      setTold("");
    } catch (error) {
      setTold(messageOf(error));
    }
  };
  return (
    <div className="stack tight">
      {rows.map((row, at) => {
        const stored = typeof row.given === "object" && row.given !== null ? (row.given as { name?: string }) : null;
        return (
          <div key={row.id} className="map-row">
            <input {...(at === 0 ? ids : {})} aria-label={`Input ${at + 1}`} placeholder="input, such as raw.csv" value={row.path} onChange={(event) => change(row.id, { path: event.target.value })} />
            <button type="button" className="icon-button" aria-label={`Remove input ${row.path || at + 1}`} onClick={() => put(rows.filter((each) => each.id !== row.id))}><Icon name="close" size={14} /></button>
            <input className="map-value" aria-label={`File for input ${at + 1}`} placeholder="a path on the server, lfn:/NAME or a URL" readOnly={stored !== null} value={stored ? `${stored.name ?? "a file"}, from here` : String(row.given)} onChange={(event) => change(row.id, { given: event.target.value })} />
            <label className="button small file-button">
              From here
              <input
                type="file"
                aria-label={`Choose a file for input ${at + 1}`}
                onChange={(event) => {
                  const [chosen] = takeChosen(event.target);
                  if (chosen) void upload(row, chosen);
                }}
              />
            </label>
          </div>
        );
      })}
      {told && <span className="field-hint" role="status">{told}</span>}
      <button type="button" className="link-button" onClick={() => setRows([...rows, { id: Math.max(-1, ...rows.map((row) => row.id)) + 1, path: "", given: "" }])}>add an input</button>
    </div>
  );
}
