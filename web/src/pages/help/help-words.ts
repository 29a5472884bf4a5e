/** What the words of mendflow mean, as docs/reference/glossary.md says it, which has all of them. `elsewhere` has the words of
 * other systems for the same, or for what comes closest. */
import { EXPLAINED_WORDS } from "@/components/explained-words";

export interface HelpWord {
  word: string;
  means: string;
  elsewhere: string;
}

export const HELP_WORDS: readonly HelpWord[] = [
  { word: "flow", means: "what to do: a tree of activities, written in YAML or Python; a job alone also in JSDL", elsewhere: "workflow, pipeline (Nextflow, Snakemake); DAG (Airflow); workflow definition (Temporal); process (BPMN)" },
  { word: "case", means: "a running instance of a flow, such as `night-7f3k`", elsewhere: "run (Nextflow, Snakemake); DAG run (Airflow); workflow execution (Temporal); process instance (BPMN)" },
  { word: "item", means: EXPLAINED_WORDS.item, elsewhere: "task (Nextflow); job (Snakemake); task instance (Airflow); activity instance (BPMN)" },
  { word: "job", means: "what a pilot executes for an item: a shell command or a Python function", elsewhere: "job (Slurm, Snakemake); task (Nextflow); activity task (Temporal)" },
  { word: "attempt", means: "one try of a job by a pilot. A job may take several; a grant that came back before it was begun (it ends as `returned`) is none", elsewhere: "attempt (Nextflow, Snakemake, Temporal); try (Airflow); restart count (Slurm)" },
  { word: "pilot", means: EXPLAINED_WORDS.pilot, elsewhere: "worker (Airflow, Temporal, Dask); glidein (HTCondor)" },
  { word: "site", means: "a batch system to which pilots are submitted, with their number and settings", elsewhere: "executor, queue (Nextflow); profile (Snakemake); partition (Slurm)" },
  { word: "slot", means: EXPLAINED_WORDS.slot, elsewhere: "slot (Airflow pool, HTCondor); CPU (Slurm)" },
  { word: "held", means: EXPLAINED_WORDS.held, elsewhere: "incident (Camunda)" },
  { word: "stopped", means: "of a case: a command found it unfinished in the data folder, and does not continue it until it is asked to", elsewhere: "" },
  { word: "mended", means: "an item that is done after more than one attempt, or a restart; it is counted among those that are done", elsewhere: "retried (Nextflow, Airflow)" },
  { word: "cached", means: "of an item: its result comes from an earlier case, because it is made from the same: command, environment, inputs by their content (Earlier results). `mendflow run` and `rerun` do so where jobs declare enough; `--cached` asks for all of it, `--no-cache` for none. (`resume`, which Nextflow uses for this, goes on with the same case here)", elsewhere: "cached, -resume (Nextflow); up to date (Snakemake); cached (Prefect)" },
  { word: "taken up", means: "of a failure: a rule fits it, or a person mended it. One that nobody took up, and whose case was not run again and is not settled, is still to be looked at", elsewhere: "" },
  { word: "passed on", means: "of a failure: no repair settled it, so that the flow gets it, as if no rule had fitted: its own handlers, a loop that tolerates it, or the end of the case", elsewhere: "" },
  { word: "settled", means: "of a failure that nobody took up: its case completed all the same, or somebody cancelled it, or a loop lets it fail (`tolerate`)", elsewhere: "resolved (Sentry)" },
  { word: "rule", means: "a condition over a context, and the exlet that it concludes", elsewhere: "errorStrategy closure (Nextflow); retry policy (Temporal)" },
  { word: "rule tree", means: EXPLAINED_WORDS["rule tree"], elsewhere: "" },
  { word: "rule set", means: "the trees of one flow, by type of exception and task, with their exlets. That of the default rules is called `*`", elsewhere: "" },
  { word: "default rules", means: EXPLAINED_WORDS["default rules"], elsewhere: "default retry policy (Temporal); default_args (Airflow)" },
  { word: "exlet", means: EXPLAINED_WORDS.exlet, elsewhere: "error handler (BPMN)" },
  { word: "primitive", means: EXPLAINED_WORDS.primitive, elsewhere: "" },
  { word: "exception", means: EXPLAINED_WORDS.exception, elsewhere: "errorStrategy (Nextflow); on_failure_callback (Airflow); boundary event (BPMN)" },
  { word: "context", means: EXPLAINED_WORDS.context, elsewhere: "task context (Airflow)" },
  { word: "cornerstone", means: EXPLAINED_WORDS.cornerstone, elsewhere: "" },
  { word: "proposal", means: "a rule that past failures suggest, with its evidence. It is in force only when somebody has adopted it", elsewhere: "" },
  { word: "on trial", means: EXPLAINED_WORDS["on trial"], elsewhere: "shadow mode" },
  { word: "user task", means: "a person's work: offered to a role, claimed, completed or rejected. All of them are the worklist", elsewhere: "user task (BPMN); human in the loop (Airflow)" },
  { word: "schedule", means: "when cases of a flow are started by the clock, by cron or in an interval, and what is done about times that were missed or overlap", elsewhere: "schedule (Airflow, Temporal, Prefect); CronJob (Kubernetes); crontab" },
  { word: "data set", means: "files that belong together, in the order in which they came, until it is closed", elsewhere: "channel (Nextflow); asset (Airflow)" },
  { word: "logical file", means: EXPLAINED_WORDS["logical file"], elsewhere: "file path (Snakemake); asset (Airflow)" },
  { word: "storage element", means: "a place for files, by a URL: a folder, a bucket. Its rules, or its URL alone, map names to places", elsewhere: "storage provider (Snakemake); remote work dir (Nextflow)" },
  { word: "domain", means: EXPLAINED_WORDS.domain, elsewhere: "deployment" },
  { word: "project", means: "whose a flow or a case is; roles and quotas are given by project", elsewhere: "account (Slurm); namespace (Temporal)" },
  { word: "alert", means: "something that a person should look at; raised once, by one server, for as long as it lasts. Its severity is critical, warning or info; what is only told has the severity info", elsewhere: "SLA miss, callback (Airflow); incident (Camunda)" },
  { word: "secret", means: "a text that a job gets by name, and nobody else sees: kept encrypted, masked in logs", elsewhere: "secret (Nextflow, Kubernetes, GitHub Actions); connection (Airflow)" },
  { word: "named limit", means: "how many jobs may use something at once, over all cases and servers, such as licences", elsewhere: "pool (Airflow); global resources (Snakemake); license (Slurm)" },
  { word: "activity", means: "one node of the tree of a flow: a job, a sequence, a loop, a scope, and so on", elsewhere: "task, operator (Airflow); process (Nextflow); rule (Snakemake); activity (BPMN)" },
  { word: "output", means: "a value that a job leaves for later items and for the results of its case; files are left beside it", elsewhere: "XCom (Airflow); emit (Nextflow)" },
  { word: "publish", means: "write an output of a job to a storage element, under a logical name", elsewhere: "publishDir (Nextflow)" },
  { word: "watch", means: "a folder of a storage element that is scanned regularly for files of a data set", elsewhere: "watchPath (Nextflow); sensor (Airflow)" },
  { word: "flow trigger", means: "what a deployed flow has under `on`: files that arrive and times that are due start its cases, and ends of its cases are told", elsewhere: "on (GitHub Actions); schedule, sensor (Airflow)" },
  { word: "due time", means: "a moment at which a schedule starts a case; with the schedule's name it is the key of that case", elsewhere: "logical date (Airflow)" },
  { word: "backfill", means: "starting the cases of past due times that have none", elsewhere: "backfill (Airflow, Temporal)" },
  { word: "requeue", means: "a person takes an attempt from its pilot. What it reports is refused; the job is given to another pilot when the attempt has ended, as `requeued`", elsewhere: "scontrol requeue (Slurm); clear (Airflow)" },
  { word: "run again", means: "of a failure that nobody took up: another case has begun since in the place of its own (`mendflow rerun`)", elsewhere: "rerun (GitHub Actions)" },
  { word: "reopened", means: "of a case: it had failed, and goes on from where it stood (`mendflow rerun --group`, `mendflow rules apply`)", elsewhere: "reset (Temporal); clear (Airflow)" },
  { word: "generation", means: "how often a job was submitted. Each has its own attempts", elsewhere: "" },
  { word: "level", means: EXPLAINED_WORDS.level, elsewhere: "retry backoff (Temporal, Airflow)" },
  { word: "decision", means: "the conclusion about an exception, with its context and its result", elsewhere: "" },
  { word: "compensation", means: "what undoes a completed step", elsewhere: "compensation (BPMN); saga (Temporal)" },
  { word: "stored file", means: "a file on the server, known by the digest of its content", elsewhere: "artifact (Prefect)" },
];
