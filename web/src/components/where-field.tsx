/** A condition of the API's search, with completion of names and values. */
import { useMemo, useState } from "react";
import type { CodeCompletion } from "./code-view";
import { LineField } from "./line-field";
import { ErrorState } from "./states-of-page";
import { Icon } from "./icon";

export interface WhereName {
  name: string;
  kind: "text" | "number" | "time" | "duration" | "size" | "truth" | "data";
  what: string;
  values?: readonly string[];
}

export const CASE_NAMES: readonly WhereName[] = [
  { name: "id", kind: "text", what: "the case's id" },
  { name: "flow", kind: "text", what: "its flow's name" },
  { name: "status", kind: "text", what: "how it is", values: ["running", "suspended", "completed", "failed", "cancelled"] },
  { name: "owner", kind: "text", what: "who started it" },
  { name: "started", kind: "time", what: "when it began" },
  { name: "ended", kind: "time", what: "when it ended" },
  { name: "runtime", kind: "duration", what: "from its start to its end" },
  { name: "parent", kind: "text", what: "the case that called it" },
  { name: "mends", kind: "text", what: "of an exlet: the case that it mends" },
  { name: "rerun_of", kind: "text", what: "the case whose results it uses, as one that runs it again does" },
  { name: "stands_for", kind: "text", what: "the case that it runs again, and in whose place it stands" },
  { name: "done", kind: "number", what: "how many items are done" },
  { name: "failed", kind: "number", what: "how many items failed" },
  { name: "mended", kind: "number", what: "how many were mended" },
  { name: "for_person", kind: "truth", what: "whether something in it waits for a person" },
  { name: "fault.name", kind: "text", what: "the fault's name" },
  { name: "fault.category", kind: "text", what: "where it failed", values: ["memory", "time", "data", "input", "job", "output", "resource", "network", "flow", "cancelled"] },
  { name: "fault.message", kind: "text", what: "the fault's sentence" },
  { name: "inputs", kind: "data", what: "what it was started with, as in inputs.sample" },
  { name: "outputs", kind: "data", what: "what it gave" },
  { name: "engine", kind: "text", what: "of another engine's case: that engine" },
  { name: "digest", kind: "text", what: "which version of the flow" },
];

export const JOB_NAMES: readonly WhereName[] = [
  { name: "id", kind: "text", what: "the job's id" },
  { name: "case", kind: "text", what: "its case's id" },
  { name: "flow", kind: "text", what: "the flow of the case that started everything" },
  { name: "item", kind: "text", what: "the item that it does, as in align[3]" },
  { name: "name", kind: "text", what: "its name, without its iterations" },
  { name: "state", kind: "text", what: "how it is", values: ["waiting", "running", "completed", "failed"] },
  { name: "suspended", kind: "truth", what: "whether somebody suspends it" },
  { name: "owner", kind: "text", what: "who it is for" },
  { name: "pilot", kind: "text", what: "the pilot that has it now" },
  { name: "priority", kind: "number", what: "higher ones go first" },
  { name: "attempts", kind: "number", what: "how often it was given to a pilot" },
  { name: "created", kind: "time", what: "when it was submitted" },
  { name: "not_before", kind: "time", what: "no pilot gets it before then" },
  { name: "resources.cpus", kind: "number", what: "the CPUs that it asks for" },
  { name: "resources.memory", kind: "size", what: "the memory that it asks for" },
  { name: "resources.site", kind: "text", what: "the site that it asks for" },
];

export const ITEM_NAMES: readonly WhereName[] = [
  { name: "item", kind: "text", what: "the item's id, as in align[3]" },
  { name: "name", kind: "text", what: "its name, without its iterations" },
  { name: "kind", kind: "text", what: "job, task, call, stage, ..." },
  { name: "state", kind: "text", what: "how it is", values: ["waiting", "running", "completed", "failed", "skipped", "cancelled", "cached", "suspended"] },
  { name: "pilot", kind: "text", what: "the pilot that has it now" },
  { name: "attempts", kind: "number", what: "the attempts of all its runs" },
  { name: "runs", kind: "number", what: "one more for each restart" },
  { name: "created", kind: "time", what: "when it began" },
  { name: "ended", kind: "time", what: "when it ended" },
  { name: "runtime", kind: "duration", what: "from when it began to its end, with what it waited" },
  { name: "fault.category", kind: "text", what: "where it failed" },
  { name: "fault.message", kind: "text", what: "the fault's sentence" },
  { name: "command", kind: "text", what: "its command" },
];

const AFTER: Record<WhereName["kind"], readonly [string, string][]> = {
  text: [["==", "is"], ["!=", "is not"], [".contains('')", "has in it"], [".startsWith('')", "begins with"], ["in", "is one of"]],
  number: [[">", "more than"], ["<", "less than"], ["==", "is"]],
  time: [["> ago('1 day')", "in the last day"], ["> ago('1h')", "in the last hour"], ["<", "before"]],
  duration: [["> '10m'", "longer than"], ["< '10m'", "shorter than"]],
  size: [["> '1GB'", "more than"], ["< '1GB'", "less than"]],
  truth: [["== true", "holds"]],
  data: [["!= null", "is there"]],
};

/** What can stand at the end of the text: a name, an operator, a value, or how conditions are joined. */
export function completionsOf(names: readonly WhereName[], before: string, values: Record<string, readonly string[]> = {}): CodeCompletion[] {
  const quoted = /([\w.]+)\s*(?:==|!=|in\s*\[[^\]]*)\s*('[^']*)?$/.exec(before);
  const asked = quoted && names.find((each) => each.name === quoted[1]);
  if (asked) return [...(values[asked.name] ?? asked.values ?? [])].map((value) => ({ label: `'${value}'`, apply: `'${value}'` }));
  const after = /(?:^|[\s(!])([\w.]+)\s+\S*$/.exec(before);
  const known = after && names.find((each) => each.name === after[1]);
  if (known) return AFTER[known.kind].filter(([text]) => !text.startsWith(".")).map(([label, detail]) => ({ label, detail }));
  if (/(['\d)\]]|true|null)\s+\S*$/.test(before)) return [{ label: "&&", detail: "and" }, { label: "||", detail: "or" }];
  return names.map((each) => ({ label: each.name, detail: each.what }));
}

export function WhereField(props: {
  label: string;
  value: string;
  names: readonly WhereName[];
  values?: Record<string, readonly string[]>;
  error?: unknown;
  placeholder: string;
  onSearch: (where: string) => void;
}) {
  const [text, setText] = useState(props.value);
  const [before, setBefore] = useState(props.value);
  if (before !== props.value) {
    setBefore(props.value);
    setText(props.value);
  }
  const complete = useMemo(() => (typed: string) => completionsOf(props.names, typed, props.values), [props.names, props.values]);
  return (
    <div className="where-field">
      <div className="where-line">
        <Icon name="search" size={14} />
        <LineField text={text} label={props.label} language="cel" onChange={setText} onEnter={props.onSearch} complete={complete} placeholder={props.placeholder} />
        {text !== props.value && (
          <button type="button" className="button small" onClick={() => props.onSearch(text)}>
            Search
          </button>
        )}
        {props.value && (
          <button type="button" className="icon-button" aria-label="Clear the condition" onClick={() => props.onSearch("")}>
            <Icon name="close" size={14} />
          </button>
        )}
      </div>
      {Boolean(props.error) && <ErrorState error={props.error} compact />}
    </div>
  );
}
