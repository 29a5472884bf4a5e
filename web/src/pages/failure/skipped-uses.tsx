/** What later steps of the flow take from an item: one that is skipped leaves them without it. */
import { useQuery } from "@tanstack/react-query";
import { plural } from "@/components/format";
import { flowOfCaseQuery } from "@/pages/case/queries";
import type { Flow } from "@/components/recovery/queries";

export interface Use {
  /** The step that takes it, as people see it. */
  by: string;
  /** What it takes, such as `files.clean`. */
  what: string[];
}

type Node = Record<string, unknown>;

/** Whether an exlet ends the item at hand as completed. */
export function skips(flow: Flow | null): boolean {
  return flow !== null && JSON.stringify(flow).includes('"do":"force-complete"');
}

/** The steps that read `jobs.NAME.files` or `jobs.NAME.outputs` of a task. */
export function usesOf(flow: unknown, task: string): Use[] {
  const named = task.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  const read = new RegExp(String.raw`jobs(?:\.${named}(?!\w)|\[['"]${named}['"]\])\.(files|outputs)(?:\.(\w+)|\[['"]([^'"]+)['"]\])?`, "g");
  const found = new Map<string, Set<string>>();
  const look = (value: unknown, by: string): void => {
    if (typeof value === "string") {
      for (const [, kind = "", name, quoted] of value.matchAll(read)) {
        const what = [kind, name ?? quoted].filter(Boolean).join(".");
        found.set(by, (found.get(by) ?? new Set()).add(what));
      }
    } else if (Array.isArray(value)) value.forEach((each) => look(each, by));
    else if (typeof value === "object" && value !== null) {
      const node = value as Node;
      const own = typeof node["kind"] === "string" ? String(node["label"] || node["name"] || by) : by;
      Object.values(node).forEach((each) => look(each, own));
    }
  };
  look((flow as Node | undefined)?.["body"], "the flow");
  return [...found].map(([by, what]) => ({ by, what: [...what].sort() }));
}

/** Told before it is done: a step whose inputs cannot be worked out fails at once, and no rule and no person is asked. */
export function SkippedUses({ case: id, task }: { case: string; task: string }) {
  const flow = useQuery(flowOfCaseQuery(id)).data;
  const uses = usesOf(flow, task);
  if (!uses.length) return null;
  const needsFiles = uses.some(({ what }) => what.some((each) => each.startsWith("files")));
  return (
    <div className="notice" role="status">
      <p>
        {plural(uses.length, "later step takes", "later steps take")} what {task} leaves: {uses.map(({ by, what }) => `${by} (${what.join(", ")})`).join("; ")}. An item that counts as completed by force-complete leaves no files, and only the outputs that are given it. A step that finds nothing there fails at once, and the case with it, even where failures wait for a person.
      </p>
      {needsFiles && <p>To go on with another input, use re-submit with “other input files”.</p>}
    </div>
  );
}
