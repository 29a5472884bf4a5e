/** Why a row waits or failed: short, and whole where the pointer rests. What a terminal would do is left out. */
import { withoutCommands } from "./commands";

/** `it ended with exit code 17; its last line: no such folder` begins with what tells most, for a row has room for its beginning. */
export function lastLineFirst(text: string): string {
  const [, how = "", line = ""] = /^it ended with (.+?); its last line: ([\s\S]+)$/.exec(text) ?? [];
  return line ? `${line} (${how})` : text;
}

export function RowReason({ text }: { text: string }) {
  if (!text) return null;
  return <span title={text.replaceAll("`", "")}>{lastLineFirst(withoutCommands(text).replace(/[.;]$/, "").replaceAll("`", ""))}</span>;
}
