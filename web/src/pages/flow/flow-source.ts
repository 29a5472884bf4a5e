/** A flow file as it goes to a server with its flow. */
import type { Schemas } from "@/api/client";

/** Characters of a flow file that a server keeps: FLOW_TEXT_MAX there. */
export const FLOW_TEXT_MAX = 1 << 20;

const NOT_PLAIN = /[\p{C}\p{Zl}\p{Zp}\\]|(?! )\p{Zs}/gu;

/** The name of a file as a server takes it: one path, without what leads elsewhere or cannot be shown. */
export function plainFileName(file: string): string {
  const plain = (file.split("/").at(-1) ?? "").replace(NOT_PLAIN, "_").trim();
  return plain && plain !== "." && plain !== ".." ? plain : "flow.yaml";
}

/** A file that is too long is named, with the reason why its text is left out, as the command line does. */
export function sourceOf(chosen: string, text: string): Schemas["FlowSource"] {
  const file = plainFileName(chosen);
  if (!isTooLong(text)) return { file, text };
  const characters = FLOW_TEXT_MAX.toLocaleString("en-US");
  return { file, left_out: `the file is longer than ${characters} characters, and not kept` };
}

/** A server counts characters; `length` counts some as two. */
function isTooLong(text: string): boolean {
  if (text.length <= FLOW_TEXT_MAX) return false;
  if (text.length > 2 * FLOW_TEXT_MAX) return true;
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters > FLOW_TEXT_MAX;
}
