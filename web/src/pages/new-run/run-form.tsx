import { useNavigate } from "@tanstack/react-router";
import { useId, useMemo, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { ApiError, asSentence } from "@/api/errors";
import type { CaseView } from "@/api/queries";
import { useMay } from "@/api/session";
import { useRefresh } from "@/components/acts";
import { effectiveInputs } from "@/components/case-inputs";
import { useInvalidFieldFocus } from "@/components/invalid-field-focus";
import { SelectField, TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { nullPrototypeRecord } from "@/components/own-properties";
import { ErrorState } from "@/components/states-of-page";
import { toast, toastError } from "@/components/toasts";
import type { Draft } from "@/components/typed-values";
import { ValueField } from "@/components/value-field";
import { Word } from "@/components/word";
import { useInputs } from "./input-drafts";
import { sizeInputs } from "./size-inputs";

type StartBody = Schemas["StartBody"];

/** A start uses what `mendflow start` uses, and says so: where nothing is said, the API uses no earlier results. */
export const USUAL_CACHE = "declared";
const DECLARED = "Of jobs that declare what they read and write";
const MORE_CACHE = [
  ["all", "Of all jobs"],
  ["none", "None: run everything"],
] as const;
const CACHE = [["declared", `${DECLARED} (usual)`], ...MORE_CACHE] as const;
const CACHE_OF_RERUN = [["", "Of the case itself, and of jobs that declare what they read and write (usual)"], ["declared", DECLARED], ...MORE_CACHE] as const;

const UNHANDLED = [
  ["", "As the flow or the server says"],
  ["hold", "Wait for a person"],
  ["fail", "Fail the case"],
] as const;

/** A new case does what its flow says now; what was chosen for the earlier one is told, to be chosen again. */
export function chosenBefore(earlier: Pick<CaseView, "id" | "on_unhandled"> | undefined): string {
  const [, word] = UNHANDLED.find(([policy]) => policy !== "" && policy === earlier?.on_unhandled) ?? [];
  return word && earlier ? `For ${earlier.id} somebody had chosen “${word}” for a failure that no rule takes up. The new case does what its flow says, unless you choose that below, under More settings.` : "";
}

/** What an act waits for while files are being stored. */
export function WaitsForFiles({ id, act, storing }: { id?: string; act: string; storing: readonly string[] }) {
  return (
    <span id={id} role="status" className="muted">
      {storing.length > 0 && `${act} waits until ${storing.join(" and ")} ${storing.length === 1 ? "is" : "are"} stored`}
    </span>
  );
}

/** The order of the form: what is needed first. */
export function orderOf(inputs: Record<string, Schemas["Input"]>): [string, Schemas["Input"]][] {
  return Object.entries(inputs).sort(([, one], [, other]) => Number(other.required ?? false) - Number(one.required ?? false));
}

export type FlowToRun = Pick<Schemas["Flow"], "name" | "inputs">;

interface FormProps {
  /** What the new case runs. */
  flow: FlowToRun;
  /** Of the flow, where it is the newest one. */
  version?: number;
  /** The form begins with what this case had: with the defaults of `had`, its own flow, where it was given nothing. */
  earlier?: CaseView;
  had?: FlowToRun;
  /** The new case runs the earlier one again with the flow that it had; else with the flow as it is now, in its place if it has ended. */
  runsAgain?: boolean;
}

export function RunForm({ flow, version = 0, earlier, had, runsAgain = false }: FormProps) {
  const rerunOf = runsAgain ? earlier?.id : undefined;
  const inputsOf = runsAgain ? undefined : earlier;
  const isHeld = inputsOf !== undefined && !inputsOf.ended_at && inputsOf.held.length > 0;
  const mayCancel = useMay("cancel") && inputsOf !== undefined && !inputsOf.ended_at;
  const [cancels, setCancels] = useState(false);
  const navigate = useNavigate();
  const refresh = useRefresh();
  const inputs = flow.inputs ?? {};
  const before = useMemo(() => effectiveInputs({ inputs: {}, defaults: earlier?.defaults ?? {} }, had?.inputs), [earlier?.defaults, had]);
  const { drafts, set, problems, values, storing, setStoring } = useInputs(inputs, { given: earlier?.inputs, before, isKept: runsAgain });
  const sizes = useMemo(() => sizeInputs(flow), [flow]);
  const waits = useId();
  const act = rerunOf ? "Run again" : "Start";
  const [tries, setTries] = useState(0);
  const tried = tries > 0;
  useInvalidFieldFocus(tries);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const [cache, setCache] = useState<NonNullable<StartBody["cache"]>>(rerunOf ? "" : USUAL_CACHE);
  const [unhandled, setUnhandled] = useState<NonNullable<StartBody["on_unhandled"]>>("");
  const [key, setKey] = useState("");
  const told = refusedInputs(refused, Object.keys(inputs));
  const change = (name: string, draft: Draft) => {
    set(name, draft);
    setRefused(null);
  };
  const start = async () => {
    setTries(tries + 1);
    setRefused(null);
    if (Object.keys(problems).length) return;
    setBusy(true);
    try {
      const body: StartBody = { flow: flow.name, inputs: values, cache, on_unhandled: unhandled, ...(key ? { key } : {}), ...(inputsOf && inputsOf.ended_at ? { rerun_of: inputsOf.id } : isHeld && cache !== "none" ? { cache_from: inputsOf.id } : {}) };
      const again = { inputs: values, ...(cache ? { cache } : {}) };
      const started = rerunOf ? await ask(api.POST("/api/v1/cases/{case}/rerun", { params: { path: { case: rerunOf } }, body: again })) : await ask(api.POST("/api/v1/cases", { body }));
      toast("good", `${started.id} has started`);
      if (inputsOf && mayCancel && cancels) await cancelled(inputsOf.id, started.id);
      void refresh("cases", "overview");
      await navigate({ to: "/cases/$case", params: { case: started.id } });
    } catch (error) {
      setRefused(error);
      if (refusedInputs(error, Object.keys(inputs)).all) setTries(tries + 2);
    } finally {
      setBusy(false);
    }
  };
  const names = orderOf(inputs);
  return (
    <form
      className="stack"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      {inputsOf && (
        <p className="notice">
          The fields begin with the inputs of {inputsOf.id}{Object.keys(before).some((name) => !(name in inputsOf.inputs)) && ", and with its defaults where it was given none"}. Change what is to be different: it starts as a new case{inputsOf.ended_at > 0 && ` with the flow as it is now${version ? `, version ${version}` : ""}`}{(isHeld || inputsOf.ended_at > 0) && cache !== "none" && ", and results that do not depend on what has changed are taken over"}. {becomesOf(inputsOf, { isHeld, mayCancel, cancels })} {chosenBefore(inputsOf)}
        </p>
      )}
      {rerunOf && <p className="notice">The fields begin with the inputs of {rerunOf}, and its flow is run as it was then. Change what is to be different: results that do not depend on it are taken over.</p>}
      {!names.length && <p className="muted">This flow needs no inputs.</p>}
      {names.map(([name, wanted]) => (
        <ValueField key={name} name={name} wanted={wanted} isSize={sizes.has(name)} draft={drafts[name] ?? ""} onChange={(draft) => change(name, draft)} onStoring={(file) => setStoring(name, file)} problem={told.of[name] ?? (tried || wanted.type === "number" ? shownProblem(problems[name], drafts[name], tried) : null)} />
      ))}
      <details className="more-settings">
        <summary>More settings</summary>
        <div className="stack">
          <SelectField label="Earlier results" value={cache} onChange={setCache} choices={rerunOf ? CACHE_OF_RERUN : CACHE} hint="A job whose result is known from the same inputs is not run again." />
          {!rerunOf && <SelectField label="A failure that no rule takes up" value={unhandled} onChange={setUnhandled} choices={UNHANDLED} />}
          {!rerunOf && <TextField label="Key" value={key} onChange={setKey} hint={<>Started again with the same key, it is the same case. <Word of="Key">What is a key for?</Word></>} />}
        </div>
      </details>
      {inputsOf && mayCancel && (
        <label className="row">
          <input type="checkbox" checked={cancels} onChange={(event) => setCancels(event.target.checked)} /> Cancel {inputsOf.id} when the new one has started{isHeld && !cancels && ": else it stays held"}
        </label>
      )}
      {tried && Object.keys(problems).length > 0 && <p className="field-problem" role="alert">Fill in {Object.keys(problems).join(", ")} to {act.toLowerCase()}.</p>}
      {refused !== null && !told.all && <ErrorState error={refused} compact />}
      <div className="row">
        <button type="submit" className="button primary" disabled={busy || storing.length > 0} aria-describedby={waits}>
          <Icon name="run" size={14} /> {act}
        </button>
        <WaitsForFiles id={waits} act={act} storing={storing} />
      </div>
    </form>
  );
}

/** What becomes of the case whose inputs were taken. */
export function becomesOf(view: Pick<CaseView, "id" | "ended_at">, { isHeld, mayCancel, cancels }: { isHeld: boolean; mayCancel: boolean; cancels: boolean }): string {
  if (view.ended_at) return `${view.id} stays as it is.`;
  if (mayCancel && cancels) return `${view.id} is cancelled when the new case has started.`;
  return `${view.id} ${isHeld ? "stays held: it waits for a person" : "stays as it is and goes on waiting"}${mayCancel ? ", unless you have it cancelled below" : ""}.`;
}

/** Cancel the case in whose place another has started; the other one is there, whatever becomes of that. */
async function cancelled(id: string, by: string): Promise<void> {
  try {
    await ask(api.POST("/api/v1/cases/{case}/cancel", { params: { path: { case: id } }, body: { reason: `${by} was started in its place` } }));
    toast("good", `${id} is being cancelled`);
  } catch (error) {
    toastError(error);
  }
}

/** What the server says of inputs, by their names; `all` if it says nothing else. */
export function refusedInputs(refused: unknown, names: readonly string[]): { of: Record<string, string>; all: boolean } {
  const said = refused instanceof ApiError && Array.isArray(refused.fields["problems"]) ? refused.fields["problems"].map(String) : refused instanceof ApiError ? [refused.message] : [];
  const of = nullPrototypeRecord<string>();
  let others = 0;
  for (const each of said) {
    const name = names.find((one) => each.startsWith(`input ${one} `) || each.startsWith(`input ${one}:`));
    const takenFrom = names.find((one) => each.includes(` (from inputs.${one})`));
    if (takenFrom !== undefined) of[takenFrom] = asSentence(each);
    else if (name === undefined) others += 1;
    else of[name] = asSentence(each.slice(`input ${name} `.length));
  }
  return { of, all: said.length > 0 && others === 0 };
}

/** What is missing is said when somebody tries to start; what is wrong at once. */
function shownProblem(problem: string | undefined, draft: Draft | undefined, tried: boolean): string | null {
  return problem && (tried || draft) ? problem : null;
}
