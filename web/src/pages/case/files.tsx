/** Files among values, each with a preview: text, JSON, images, tables. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { requestBeginning } from "@/api/client";
import { bytes } from "@/components/format";
import { Icon } from "@/components/icon";
import { JsonTree } from "@/components/json-tree";
import { LogView } from "@/components/log-view";
import { Panel } from "@/components/page";
import { ErrorState, Loading } from "@/components/states-of-page";


export interface FileRef {
  sha256: string;
  bytes: number;
  name: string;
}

/** A stored file, as values have it: `{"$file": SHA-256, name, bytes}`. */
function fileOf(value: object): FileRef | null {
  const { $file: sha256, name, bytes: size } = value as { $file?: unknown; name?: unknown; bytes?: unknown };
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) return null;
  return { sha256, name: typeof name === "string" ? name : "", bytes: typeof size === "number" ? size : 0 };
}

/** Every file in a value, with where it stands. */
export function filesIn(value: unknown, path = ""): { path: string; file: FileRef }[] {
  const file = typeof value === "object" && value !== null ? fileOf(value) : null;
  if (file) return [{ path, file }];
  if (Array.isArray(value)) return value.flatMap((each, at) => filesIn(each, `${path}[${at}]`));
  if (typeof value === "object" && value !== null) return Object.entries(value).flatMap(([name, each]) => filesIn(each, path ? `${path}.${name}` : name));
  return [];
}

/** Where a file is read. Who is no administrator reads it as a file of a case. */
export function fileAddress(file: FileRef, of: string): string {
  return `/api/v1/files/${file.sha256}?of=${encodeURIComponent(of)}`;
}

/** `of`: the case, or the job, that has the value. */
export function Files({ title, value, of }: { title: string; value: unknown; of: string }) {
  const found = filesIn(value);
  const [open, setOpen] = useState<string | null>(null);
  if (!found.length) return null;
  return (
    <Panel title={title} className="flush">
      <ul className="rows">
        {found.slice(0, 200).map(({ path, file }) => (
          <li key={path}>
            <div className="file-row">
              <Icon name="file" size={14} />
              <button type="button" className="link-button" aria-expanded={open === path} onClick={() => setOpen(open === path ? null : path)}>
                {file.name || path}
              </button>
              {file.name !== path && <span className="muted">{path}</span>}
              <span className="muted">{bytes(file.bytes)}</span>
              <span className="spread" />
              <a href={fileAddress(file, of)} download={file.name || path} className="icon-button" aria-label={`Download ${file.name || path}`}>
                <Icon name="download" size={14} />
              </a>
            </div>
            {open === path && (
              <div className="file-preview">
                <Preview file={file} of={of} />
              </div>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const BYTES_MAX = 1_000_000;
const IMAGES: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };
const IMAGE_BYTES_MAX = 20_000_000;

function Preview({ file, of }: { file: FileRef; of: string }) {
  const kind = (file.name.split(".").pop() ?? "").toLowerCase();
  const image = IMAGES[kind];
  const query = useQuery({
    queryKey: ["file", file.sha256],
    queryFn: ({ signal }) => requestBeginning(fileAddress(file, of), image ? IMAGE_BYTES_MAX : BYTES_MAX, signal),
    staleTime: Infinity,
    gcTime: 30_000,
  });
  if (query.isError) return <ErrorState error={query.error} compact />;
  if (!query.data) return <Loading />;
  if (image) return <ImagePreview blob={query.data.blob.slice(0, query.data.blob.size, image)} name={file.name} />;
  return <TextPreview blob={query.data.blob} whole={query.data.whole} kind={kind} name={file.name} />;
}

function ImagePreview({ blob, name }: { blob: Blob; name: string }) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [blob.size, name]);
  return address ? <img className="preview-image" src={address} alt={name} /> : null;
}

function TextPreview(props: { blob: Blob; whole: boolean; kind: string; name: string }) {
  const query = useQuery({ queryKey: ["file-text", props.name, props.blob.size], queryFn: () => props.blob.text(), gcTime: 0 });
  if (query.data === undefined) return <Loading />;
  const text = query.data;
  const note = props.whole ? null : <p className="muted">Only the beginning is shown; download it for the rest.</p>;
  if (text.slice(0, 4000).includes("\u0000")) return <p className="muted">It is no text. Download it to look at it.</p>;
  if (props.kind === "json" && props.whole) {
    try {
      return <JsonTree value={JSON.parse(text) as unknown} label={props.name} open={3} />;
    } catch {
      return <pre>{text}</pre>;
    }
  }
  if (props.kind === "csv" || props.kind === "tsv") return <>{note}<TablePreview text={text} separator={props.kind === "tsv" ? "\t" : ","} /></>;
  return (
    <>
      {note}
      <div className="item-log" style={{ minHeight: 0, height: Math.min(360, 64 + 18 * text.split("\n").length) }}>
        <LogView text={text} label={props.name} what="file" />
      </div>
    </>
  );
}

const ROWS_MAX = 200;

/** The cells of a line; a cell in quotation marks may have separators. */
export function cellsOf(line: string, separator: string): string[] {
  const cells: string[] = [];
  let cell = "";
  let inQuotes = false;
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at];
    if (char === '"' && inQuotes && line[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else if (char === '"') inQuotes = !inQuotes;
    else if (char === separator && !inQuotes) {
      cells.push(cell);
      cell = "";
    } else cell += char;
  }
  return [...cells, cell];
}

function TablePreview({ text, separator }: { text: string; separator: string }) {
  const lines = text.split(/\r?\n/).filter(Boolean);
  const [head = "", ...rest] = lines;
  const used = separator === "," && !head.includes(",") && head.includes(";") ? ";" : separator;
  return (
    <>
      <table className="preview-table">
        <thead>
          <tr>
            {cellsOf(head, used).map((cell, at) => (
              <th key={at} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rest.slice(0, ROWS_MAX).map((line, row) => (
            <tr key={row}>
              {cellsOf(line, used).map((cell, at) => (
                <td key={at}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rest.length > ROWS_MAX && <p className="muted">{rest.length - ROWS_MAX} more rows</p>}
    </>
  );
}
