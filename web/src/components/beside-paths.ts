/** Which file stands for which path that a flow file names. A browser tells the names of files, and not where they lay: a
 * name stands for a path if no other path of the flow ends with it. */
import type { components } from "@/api/schema";

export type FileBeside = components["schemas"]["FileBeside"];
export type FileRef = components["schemas"]["FileRef"];
/** By paths in the form that `plainPath` gives. */
export type FilesByPath = Readonly<Record<string, FileRef>>;

/** `./a//x.txt` is `a/x.txt`. */
export function plainPath(path: string): string {
  return path.split("/").filter((part) => part && part !== ".").join("/");
}

export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The files of a version. A model may know a file by its name alone: of two that have one, nobody knows which is meant. */
export function keptFiles(beside: readonly FileBeside[]): FilesByPath {
  const found = new Map<string, FileRef | null>();
  for (const { path, file } of beside) {
    if (!file) continue;
    const plain = plainPath(path);
    const known = found.get(plain);
    found.set(plain, known === undefined || known?.sha256 === file.sha256 ? file : null);
  }
  return Object.fromEntries([...found].filter((each): each is [string, FileRef] => each[1] !== null));
}

/** The paths that a file of this name may stand for. */
export function pathsNamed(asked: readonly string[], name: string): string[] {
  return [...new Set(asked.map(plainPath))].filter((path) => nameOf(path) === name);
}

/** What is sent with a flow file that asks for these paths: by its path each, as it stands in the file. A kept file that is
 * known by its name alone is left out if it may be several of them. */
export function filesToSend(asked: readonly string[], kept: FilesByPath, added: FilesByPath): Record<string, FileRef> {
  const sent = Object.entries(kept).filter(([path]) => path.includes("/") || pathsNamed(asked, path).length < 2);
  for (const path of asked) {
    const file = added[plainPath(path)] ?? kept[plainPath(path)];
    if (file) sent.push([path, file]);
  }
  return Object.fromEntries(sent);
}

/** Where files go that were chosen together, and a sentence for each that goes nowhere. */
export function placed<T extends { name: string }>(asked: readonly string[], files: readonly T[], by = "flow file"): { found: [string, T][]; told: string[] } {
  const found: [string, T][] = [];
  const told: string[] = [];
  for (const file of files) {
    const [path, ...others] = pathsNamed(asked, file.name);
    if (path === undefined) told.push(`The ${by} names no file ${file.name}: it was not added.`);
    else if (others.length) told.push(`${file.name} may be ${[path, ...others].join(" or ")}: add it beside its path.`);
    else found.push([path, file]);
  }
  return { found, told };
}
