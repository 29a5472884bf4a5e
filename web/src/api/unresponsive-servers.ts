/** Which servers of this installation have not answered for what a page shows: their part of it is missing. */
import { useSyncExternalStore } from "react";

const HEADER = "Mendflow-Unheard";

/** By what was asked for, so that the next whole answer to the same question ends it. */
const missing = new Map<string, string>();
const listeners = new Set<() => void>();
let servers = "";

/** Takes note of what an answer lacks. */
export function noteUnresponsiveServers(address: string, headers: Headers): void {
  const path = /^(?:\w+:\/\/[^/]*)?([^?#]*)/.exec(address)?.[1] ?? address;
  const names = headers.get(HEADER) ?? "";
  if (names) missing.set(path, names);
  else if (!missing.delete(path)) return;
  servers = [...new Set([...missing.values()].flatMap((each) => each.split(", ")))].toSorted().join(", ");
  for (const listener of listeners) listener();
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useUnresponsiveServers(): string {
  return useSyncExternalStore(listen, () => servers);
}
