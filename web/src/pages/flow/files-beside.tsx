/** The files beside a flow file that it names: those that were added here, or kept from the version before, and those
 * that are missing. */
import { useState } from "react";
import { messageOf } from "@/api/errors";
import { takeChosen } from "@/components/chosen-files";
import { bytes } from "@/components/format";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { storeFile } from "@/components/value-field";
import { nameOf, placed, plainPath, type FileBeside, type FileRef, type FilesByPath } from "@/components/beside-paths";

/** Browsers do not tell whether a file is a program; one that names its interpreter is. */
async function stored(file: File, path: string): Promise<FileRef> {
  const { $file: sha256, bytes: size = file.size } = await storeFile(file);
  const executable = (await file.slice(0, 2).text()) === "#!";
  return { sha256, bytes: size, name: nameOf(path), ...(executable && { executable }) };
}

interface Props {
  beside: FileBeside[];
  added: FilesByPath;
  /** Where files come from that were not added here. */
  before: string;
  onAdd: (files: FilesByPath) => void;
}

export function FilesBeside({ beside, added, before, onAdd }: Props) {
  const [busy, setBusy] = useState("");
  const [told, setTold] = useState<string[]>([]);
  const store = async (files: readonly [string, File][], misplaced: string[] = []) => {
    setTold(misplaced);
    const found: Record<string, FileRef> = {};
    try {
      for (const [path, file] of files) {
        setBusy(file.name);
        found[path] = await stored(file, path);
      }
    } catch (error) {
      setTold([...misplaced, messageOf(error)]);
    } finally {
      setBusy("");
      if (Object.keys(found).length) onAdd(found);
    }
  };
  const storeNamed = (files: readonly File[]) => {
    const { found, told: misplaced } = placed(beside.map((each) => each.path), files);
    void store(found, misplaced);
  };
  return (
    <Panel
      title="Files beside it"
      actions={
        <label className="button small file-button">
          <Icon name="plus" size={14} /> {busy ? `Storing ${busy} …` : "Add files"}
          <input
            type="file"
            multiple
            aria-label="Add files beside the flow file"
            disabled={busy !== ""}
            onChange={(event) => {
              const chosen = takeChosen(event.target);
              if (chosen.length) storeNamed(chosen);
            }}
          />
        </label>
      }
    >
      <ul className="flow-problems" aria-label="Files beside the flow file">
        {beside.map(({ path, file }) => (
          <li key={path} data-severity={file ? undefined : "error"}>
            <span className="mono nowrap">{path}</span>
            <span className="muted">
              {file ? `${bytes(file.bytes)}, ${plainPath(path) in added ? "added here" : `kept from ${before}`}` : "missing: add it here"}
            </span>
            <span className="spread" />
            <label className="button small file-button">
              {file ? "Replace" : "Add"}
              <input
                type="file"
                aria-label={file ? `Replace ${path}` : `Add ${path}`}
                disabled={busy !== ""}
                onChange={(event) => {
                  const [chosen] = takeChosen(event.target);
                  if (chosen) void store([[plainPath(path), chosen]]);
                }}
              />
            </label>
          </li>
        ))}
      </ul>
      {told.map((each) => (
        <p key={each} className="notice" role="alert">{each}</p>
      ))}
    </Panel>
  );
}
