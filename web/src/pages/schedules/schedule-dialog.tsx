/** Make a schedule, or say one anew. */
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, ask } from "@/api/client";
import { exactFlowQuery, flowsQuery } from "@/api/queries";
import { useRefresh } from "@/components/acts";
import { ConfirmDialog } from "@/components/dialog";
import { plural, zone } from "@/components/format";
import { useInvalidFieldFocus } from "@/components/invalid-field-focus";
import { SelectField, TextField, TimeField } from "@/components/form-fields";
import { readTime, TIME_PROBLEM, writeTime } from "@/components/quantities";
import { toast } from "@/components/toasts";
import { ValueField } from "@/components/value-field";
import { useInputs } from "../new-run/input-drafts";
import { orderOf, refusedInputs, WaitsForFiles } from "../new-run/run-form";
import { sizeInputs } from "../new-run/size-inputs";
import type { FlowView } from "@/api/queries";
import { DueInputs } from "./due-inputs";
import { NextTimes } from "./next-times";
import { useDueTimes, zoneOf, type ScheduleSpec } from "./queries";
import { RhythmFields, ZoneField } from "./rhythm-fields";
import { CATCH_UP, catchUpText, OVERLAP, overlapProblem, overlapText, type CatchUp, type Overlap } from "./what-it-does";

type How = "cron" | "every";

/** So many inputs are shown at once; of more, those that have a default are folded away, so that it is seen when cases start. */
const UNFOLDED_MAX = 2;

interface Props {
  open: boolean;
  onClose: () => void;
  onMade: (name: string) => void;
  spec?: ScheduleSpec;
}

interface InputsProps {
  view: FlowView;
  given: Record<string, unknown>;
  /** What waits while a file is being stored. */
  act: string;
  /** Whether it was tried already: what is missing is said then. */
  tried: boolean;
  /** What the server says of each. */
  refusals: Readonly<Record<string, string>>;
  onValues: (values: Record<string, unknown>, complete: boolean) => void;
}

/** The values of the fields, where the flow is known. */
function Inputs({ view, given, act, tried, refusals, onValues }: InputsProps) {
  const inputs = view.flow?.inputs ?? {};
  const { drafts, set, problems, values, storing, setStoring } = useInputs(inputs, { given });
  const sizes = useMemo(() => sizeInputs(view.flow), [view.flow]);
  const complete = !storing.length && !Object.keys(problems).length;
  const said = JSON.stringify([values, complete]);
  const [told, setTold] = useState("");
  if (said !== told) {
    setTold(said);
    queueMicrotask(() => onValues(values, complete));
  }
  const ordered = orderOf(inputs);
  // Said when the dialog was opened: a field stays where it is while it is filled in.
  const [folded] = useState(() => new Set(ordered.length > UNFOLDED_MAX ? ordered.flatMap(([name, wanted]) => (wanted.required || Object.hasOwn(given, name) ? [] : [name])) : []));
  const problemOf = (name: string) => refusals[name] ?? (tried || drafts[name] ? problems[name] : null);
  const field = ([name, wanted]: (typeof ordered)[number]) => (
    <ValueField key={name} name={name} wanted={wanted} isSize={sizes.has(name)} draft={drafts[name] ?? ""} onChange={(draft) => set(name, draft)} onStoring={(file) => setStoring(name, file)} problem={problemOf(name)} />
  );
  return (
    <>
      {ordered.filter(([name]) => !folded.has(name)).map(field)}
      {folded.size > 0 && (
        <details className="more-settings" open={[...folded].some(problemOf) || undefined}>
          <summary>{plural(folded.size, "input")} with {folded.size === 1 ? "a default" : "defaults"}: {ordered.flatMap(([name]) => (folded.has(name) ? [name] : [])).join(", ")}</summary>
          <div className="stack">{ordered.filter(([name]) => folded.has(name)).map(field)}</div>
        </details>
      )}
      <WaitsForFiles act={act} storing={storing} />
    </>
  );
}

/** How many inputs a flow has, and how many of them need a value. */
export function inputsText(inputs: Readonly<Record<string, { required?: boolean }>>): string {
  const all = Object.values(inputs);
  const needed = all.filter((each) => each.required).length;
  if (!all.length) return "It has no inputs.";
  const which = needed === 0 ? "each with a default" : needed === all.length ? "all needed" : `${needed} needed`;
  return `It has ${plural(all.length, "input")}, ${all.length === 1 ? (needed ? "which is needed" : "with a default") : which}.`;
}

export function ScheduleDialog({ open, onClose, onMade, spec }: Props) {
  const refresh = useRefresh();
  const flows = useQuery({ ...flowsQuery, enabled: open });
  const [name, setName] = useState(spec?.name ?? "");
  const [flow, setFlow] = useState(spec?.flow ?? "");
  const [how, setHow] = useState<How>(spec?.every_ms ? "every" : "cron");
  const [cron, setCron] = useState(spec?.cron ?? "0 3 * * *");
  const [every, setEvery] = useState(spec?.every_ms ? writeTime(spec.every_ms) : "1 h");
  const [timezone, setTimezone] = useState(spec ? zoneOf(spec) : zone());
  const [catchUp, setCatchUp] = useState<CatchUp>(spec?.catch_up ?? "latest");
  const [overlap, setOverlap] = useState<Overlap>(spec?.overlap ?? "wait");
  const [inputs, setInputs] = useState<Record<string, unknown>>(spec?.inputs ?? {});
  const [inputsComplete, setInputsComplete] = useState(true);
  const [tries, setTries] = useState(0);
  const tried = tries > 0;
  useInvalidFieldFocus(tries);
  const [refused, setRefused] = useState<unknown>(null);
  const chooseFlow = (next: string) => {
    setFlow(next);
    setInputs({});
    setInputsComplete(true);
  };
  const isKnown = flows.data?.some((each) => each.name === flow) ?? false;
  const view = useQuery({ ...exactFlowQuery(flow), enabled: open && isKnown });
  const inputNames = Object.keys(view.data?.flow?.inputs ?? {});
  const everyMs = readTime(every);
  const when = { cron: how === "cron" ? cron.trim() : "", every_ms: how === "every" ? (everyMs ?? 0) : 0, timezone: how === "cron" ? timezone : undefined, starts_at: spec?.starts_at, ends_at: spec?.ends_at };
  const due = useDueTimes(when);
  const flawOf = (field: string) => due.flaws.find((each) => each.field === field)?.reason;
  const wrong = !name.trim() || !isKnown || (how === "every" ? !everyMs : !cron.trim()) || !inputsComplete || due.flaws.length > 0 || overlapProblem(overlap, catchUp) !== null;
  const act = spec ? "Change" : "Make it";
  return (
    <ConfirmDialog
      title={spec ? `Change ${spec.name}` : "New schedule"}
      act={act}
      open={open}
      onClose={onClose}
      isReady={() => {
        setRefused(null);
        if (wrong) setTries(tries + 1);
        return !wrong;
      }}
      will={
        <div className="stack">
          {!spec && <TextField label="Name" required value={name} onChange={setName} placeholder="nightly" problem={tried && !name.trim() ? "A name is needed" : null} />}
          <TextField label="Flow" required value={flow} onChange={chooseFlow} among={(flows.data ?? []).map((each) => each.name)} problem={flow && flows.data && !isKnown ? `There is no flow ${flow}` : tried && !flow ? "A flow is needed" : null} hint={view.data ? `Which one is started. ${inputsText(view.data.flow?.inputs ?? {})}` : "Which one is started."} />
          {inputNames.length > 0 && (
            <section className="stack" aria-label={`Inputs of ${flow}`}>
              <h3>What each case is given: inputs of {flow}</h3>
              <Inputs
                key={flow}
                view={view.data as FlowView}
                given={spec?.inputs ?? {}}
                act={act}
                tried={tried}
                refusals={refusedInputs(refused, inputNames).of}
                onValues={(values, complete) => {
                  setInputs(values);
                  setInputsComplete(complete);
                }}
              />
              <DueInputs inputs={inputs} values={due.values ?? {}} name={name.trim()} />
            </section>
          )}
          <div className="two-fields">
            <SelectField label="When" value={how} onChange={setHow} choices={[["cron", "At times of the clock"], ["every", "At intervals"]]} />
            {how === "every" ? <TimeField label="Interval" value={every} onChange={setEvery} problem={flawOf("every") ?? (tried && !everyMs ? TIME_PROBLEM : undefined)} hint="Such as 15 min or 6 h." /> : <ZoneField value={timezone} onChange={setTimezone} problem={flawOf("timezone")} />}
          </div>
          {how === "cron" && <RhythmFields cron={cron} onCron={setCron} problem={flawOf("cron") ?? (tried && !cron.trim() ? "Times are needed" : undefined)} />}
          <section>
            <h3>Next times</h3>
            {due.times.length ? <NextTimes times={due.times} timezone={how === "cron" ? timezone : zone()} /> : <p className="muted">{due.flaws.length ? (flawOf("until") ?? "They are shown as soon as it is said when.") : "None."}</p>}
          </section>
          <div className="two-fields">
            <SelectField label="While an earlier case runs" value={overlap} onChange={setOverlap} choices={OVERLAP} problem={overlapProblem(overlap, catchUp)} hint={overlapText(overlap, catchUp)} />
            <SelectField label="After a time without a server, start" value={catchUp} onChange={setCatchUp} choices={CATCH_UP} hint={catchUpText(catchUp)} />
          </div>
        </div>
      }
      onAct={async () => {
        const body: ScheduleSpec = {
          ...(spec ?? {}),
          name: name.trim(),
          flow,
          inputs,
          ...when,
          catch_up: catchUp,
          overlap,
        };
        try {
          await ask(api.PUT("/api/v1/schedules/{name}", { params: { path: { name: body.name } }, body }));
        } catch (error) {
          setRefused(error);
          setTries(tries + 1);
          throw error;
        }
        toast("good", `${body.name} is set`);
        await refresh("schedules");
        onMade(body.name);
      }}
    />
  );
}
