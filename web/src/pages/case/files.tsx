/** Files among values, each with a preview: text, JSON, images, tables. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { requestBeginning } from "@/api/client";
import { bytes, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { JsonTree } from "@/components/json-tree";
import { LogView } from "@/components/log-view";
import { Panel } from "@/components/page";
import { ErrorState, Loading } from "@/components/states-of-page";
import { isPlainDrawing } from "./plain-drawing";


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
const IMAGES: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp", svg: "image/svg+xml" };
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
  const shown: Shown = { blob: image ? query.data.blob.slice(0, query.data.blob.size, image) : query.data.blob, whole: query.data.whole, sha256: file.sha256, name: file.name };
  if (kind === "svg") return <DrawingPreview {...shown} />;
  return image ? <ImagePreview {...shown} /> : <TextPreview {...shown} kind={kind} />;
}

/** What there is of a file: it is known by its digest, for two files of a case may have one name and one size. */
interface Shown {
  blob: Blob;
  whole: boolean;
  sha256: string;
  name: string;
}

function ImagePreview({ blob, sha256, name }: Shown) {
  const [address, setAddress] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [sha256]);
  return address ? <img className="preview-image" src={address} alt={name} /> : null;
}

function useText({ blob, sha256 }: Shown): string | undefined {
  return useQuery({ queryKey: ["file-text", sha256], queryFn: () => blob.text(), gcTime: 0 }).data;
}

/** A drawing may have scripts: at an address of its own, which belongs to nobody, none of them reaches this app, however it is
 * opened. One that draws parts of itself again and again is of any size when it is drawn, and would keep the page from answering. */
function DrawingPreview(shown: Shown) {
  const text = useText(shown);
  const [address, setAddress] = useState("");
  const drawn = text !== undefined && shown.whole && isPlainDrawing(text);
  useEffect(() => {
    if (!drawn) return undefined;
    const reader = new FileReader();
    reader.onload = () => setAddress(String(reader.result));
    reader.readAsDataURL(shown.blob);
    return () => {
      reader.onload = null;
    };
  }, [shown.sha256, drawn]);
  if (text === undefined) return <Loading />;
  if (!drawn) return <TextPreview {...shown} kind="svg" />;
  return address ? <img className="preview-image" src={address} alt={shown.name} /> : null;
}

function TextPreview(props: Shown & { kind: string }) {
  const text = useText(props);
  if (text === undefined) return <Loading />;
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
const COLUMNS_MAX = 100;
const CELL_CHARS_MAX = 500;

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

function shortened(cell: string): string {
  return cell.length > CELL_CHARS_MAX ? `${cell.slice(0, CELL_CHARS_MAX)}…` : cell;
}

function TablePreview({ text, separator }: { text: string; separator: string }) {
  const lines = text.split(/\r?\n/).filter(Boolean);
  const [head = "", ...rest] = lines;
  const used = separator === "," && !head.includes(",") && head.includes(";") ? ";" : separator;
  const heads = cellsOf(head, used);
  const cut = heads.length - COLUMNS_MAX;
  return (
    <>
      <table className="preview-table">
        <thead>
          <tr>
            {heads.slice(0, COLUMNS_MAX).map((cell, at) => (
              <th key={at} scope="col">
                {shortened(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rest.slice(0, ROWS_MAX).map((line, row) => (
            <tr key={row}>
              {cellsOf(line, used).slice(0, COLUMNS_MAX).map((cell, at) => (
                <td key={at}>{shortened(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {cut > 0 && <p className="muted">{plural(cut, "more column")} not shown; download it for all.</p>}
      {rest.length > ROWS_MAX && <p className="muted">{rest.length - ROWS_MAX} more rows</p>}
    </>
  );
}
