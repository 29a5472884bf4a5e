/** The names that conditions know, each with what it is, and where plain words are looked for. */
export interface WhereName {
  name: string;
  kind: "text" | "number" | "time" | "duration" | "size" | "truth" | "data";
  what: string;
  values?: readonly string[];
  /** Words for a state, each with the value that it is, or with a condition of its own. */
  words?: Readonly<Record<string, string>>;
}

const CASE_WORDS: Record<string, string> = {
  running: "status == 'running' && !for_person",
  waiting: "for_person",
  person: "for_person",
  suspended: "suspended",
  stopped: "suspended",
  completed: "completed",
  done: "completed",
  failed: "failed",
  cancelled: "cancelled",
  canceled: "cancelled",
};
const JOB_WORDS: Record<string, string> = { waiting: "waiting", running: "running", completed: "completed", done: "completed", failed: "failed" };
const ITEM_WORDS: Record<string, string> = { ...JOB_WORDS, person: "for_person", skipped: "skipped", cancelled: "cancelled", canceled: "cancelled", cached: "cached", suspended: "suspended" };

export const CASE_NAMES: readonly WhereName[] = [
  { name: "id", kind: "text", what: "the case's id" },
  { name: "flow", kind: "text", what: "its flow's name" },
  { name: "status", kind: "text", what: "how it is", values: ["running", "suspended", "completed", "failed", "cancelled"], words: CASE_WORDS },
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
  { name: "text", kind: "text", what: "its id, flow, owner, inputs and failure, in small letters" },
];
/** Where words are looked for. */
export const CASE_PLACES = ["text"];

export const JOB_NAMES: readonly WhereName[] = [
  { name: "id", kind: "text", what: "the job's id" },
  { name: "case", kind: "text", what: "its case's id" },
  { name: "flow", kind: "text", what: "the flow of the case that started everything" },
  { name: "item", kind: "text", what: "the item that it does, as in align[3]" },
  { name: "name", kind: "text", what: "its name, without its iterations" },
  { name: "element", kind: "text", what: "what it is for, of the loops that it is in" },
  { name: "state", kind: "text", what: "how it is", values: ["waiting", "running", "completed", "failed"], words: JOB_WORDS },
  { name: "suspended", kind: "truth", what: "whether somebody suspends it" },
  { name: "owner", kind: "text", what: "who it is for" },
  { name: "pilot", kind: "text", what: "the pilot that has it now" },
  { name: "priority", kind: "number", what: "higher ones go first" },
  { name: "attempts", kind: "number", what: "how often it was given to a pilot" },
  { name: "submitted", kind: "time", what: "when it was submitted" },
  { name: "started", kind: "time", what: "when its last attempt was given to a pilot" },
  { name: "ended", kind: "time", what: "when it ended" },
  { name: "runtime", kind: "duration", what: "how long its last attempt ran" },
  { name: "not_before", kind: "time", what: "no pilot gets it before then" },
  { name: "resources.cpus", kind: "number", what: "the CPUs that it asks for" },
  { name: "resources.memory", kind: "size", what: "the memory that it asks for" },
  { name: "resources.site", kind: "text", what: "the site that it asks for" },
  { name: "fault.category", kind: "text", what: "where it failed" },
  { name: "fault.message", kind: "text", what: "the fault's sentence" },
  { name: "command", kind: "text", what: "its command" },
  { name: "text", kind: "text", what: "its id, item, what and who it is for, and its fault, in small letters" },
];
export const JOB_PLACES = ["text", "command"];

export const ITEM_NAMES: readonly WhereName[] = [
  { name: "item", kind: "text", what: "the item's id, as in align[3]" },
  { name: "name", kind: "text", what: "its name, without its iterations" },
  { name: "kind", kind: "text", what: "job, task, call, stage, ..." },
  { name: "state", kind: "text", what: "how it is", values: ["waiting", "running", "completed", "failed", "skipped", "cancelled", "cached", "suspended"], words: ITEM_WORDS },
  { name: "pilot", kind: "text", what: "the pilot that has it now" },
  { name: "attempts", kind: "number", what: "the attempts of all its runs" },
  { name: "runs", kind: "number", what: "one more for each restart" },
  { name: "created", kind: "time", what: "when it began" },
  { name: "ended", kind: "time", what: "when it ended" },
  { name: "runtime", kind: "duration", what: "from when it began to its end, with what it waited" },
  { name: "for_person", kind: "truth", what: "whether it waits for a person: a task, or a failure that is held" },
  { name: "fault.category", kind: "text", what: "where it failed" },
  { name: "fault.message", kind: "text", what: "the fault's sentence" },
  { name: "command", kind: "text", what: "its command" },
  { name: "element", kind: "text", what: "what it is for, of the loops that it is in" },
  { name: "text", kind: "text", what: "its id, what it is for, and its fault, in small letters" },
];
export const ITEM_PLACES = ["text", "command"];
