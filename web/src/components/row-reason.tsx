/** Why a row waits or failed: short, and whole where the pointer rests. What a terminal would do is left out. */
import { withoutCommands } from "./commands";

export function RowReason({ text }: { text: string }) {
  if (!text) return null;
  return <span title={text.replaceAll("`", "")}>{withoutCommands(text).replace(/[.;]$/, "").replaceAll("`", "")}</span>;
}
