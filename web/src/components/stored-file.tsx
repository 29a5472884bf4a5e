/** A stored file among values: its name and size, and where it is read if that is known. */
import { bytes } from "./format";
import type { StoredFile } from "./typed-values";

/** `of` is the case, or the job, that has the value: who is no administrator reads it as a file of that. */
export function StoredFileName({ file, of }: { file: StoredFile; of?: string }) {
  const name = file.name || file.$file.slice(0, 12);
  return (
    <span className="json-value" title={`SHA-256 ${file.$file}`}>
      {of ? <a href={`/api/v1/files/${file.$file}?of=${encodeURIComponent(of)}`} download={name}>{name}</a> : name}
      {file.bytes !== undefined && <span className="muted"> {bytes(file.bytes)}</span>}
    </span>
  );
}
