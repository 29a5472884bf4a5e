/** Make a schedule, or say one anew. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask } from "@/api/client";
import { flowQuery, flowsQuery } from "@/api/queries";
import { useRefresh } from "@/components/acts";
import { ConfirmDialog } from "@/components/dialog";
import { zone } from "@/components/format";
import { SelectField, TextField, TimeField } from "@/components/form-fields";
import { readTime, writeTime } from "@/components/quantities";
import { toast } from "@/components/toasts";
import { ValueField } from "@/components/value-field";
import { useInputs } from "../new-run/input-drafts";
import { orderOf, WaitsForFiles } from "../new-run/run-form";
import type { FlowView } from "@/api/queries";
import type { ScheduleSpec } from "./queries";

type How = "cron" | "every";

const CATCH_UP = [
  ["latest", "the last one that was missed"],
  ["all", "all that were missed"],
  ["skip", "none that was missed"],
] as const;

const OVERLAP = [
  ["skip", "start none"],
  ["wait", "wait for it"],
  ["allow", "start it beside"],
  ["replace", "cancel the earlier one"],
] as const;

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
  onValues: (values: Record<string, unknown>, complete: boolean) => void;
}

/** The values of the fields, where the flow is known. */
function Inputs({ view, given, act, onValues }: InputsProps) {
  const inputs = view.flow?.inputs ?? {};
  const { drafts, set, problems, values, storing, setStoring } = useInputs(inputs, { given });
  const complete = !storing.length && !Object.keys(problems).length;
  const said = JSON.stringify([values, complete]);
  const [told, setTold] = useState("");
  if (said !== told) {
    setTold(said);
    queueMicrotask(() => onValues(values, complete));
  }
  return (
    <>
      {orderOf(inputs).map(([name, wanted]) => (
        <ValueField key={name} name={name} wanted={wanted} draft={drafts[name] ?? ""} onChange={(draft) => set(name, draft)} onStoring={(file) => setStoring(name, file)} problem={drafts[name] ? problems[name] : null} />
      ))}
      <WaitsForFiles act={act} storing={storing} />
    </>
  );
}

export function ScheduleDialog({ open, onClose, onMade, spec }: Props) {
  const refresh = useRefresh();
  const flows = useQuery({ ...flowsQuery, enabled: open });
  const [name, setName] = useState(spec?.name ?? "");
  const [flow, setFlow] = useState(spec?.flow ?? "");
  const [how, setHow] = useState<How>(spec?.every_ms ? "every" : "cron");
  const [cron, setCron] = useState(spec?.cron ?? "0 3 * * *");
  const [every, setEvery] = useState(spec?.every_ms ? writeTime(spec.every_ms) : "1 h");
  const [timezone, setTimezone] = useState(spec?.timezone ?? zone());
  const [catchUp, setCatchUp] = useState(spec?.catch_up ?? "latest");
  const [overlap, setOverlap] = useState(spec?.overlap ?? "wait");
  const [inputs, setInputs] = useState<Record<string, unknown>>(spec?.inputs ?? {});
  const [inputsComplete, setInputsComplete] = useState(true);
  const chooseFlow = (next: string) => {
    setFlow(next);
    setInputs({});
    setInputsComplete(true);
  };
  const isKnown = flows.data?.some((each) => each.name === flow) ?? false;
  const view = useQuery({ ...flowQuery(flow), enabled: open && isKnown });
  const everyMs = readTime(every);
  const wrong = !name.trim() || !isKnown || (how === "every" ? !everyMs : !cron.trim()) || !inputsComplete;
  const act = spec ? "Change" : "Make it";
  return (
    <ConfirmDialog
      title={spec ? `Change ${spec.name}` : "New schedule"}
      act={act}
      open={open}
      onClose={onClose}
      disabled={wrong}
      will={
        <div className="stack">
          {!spec && <TextField label="Name" required value={name} onChange={setName} placeholder="nightly" />}
          <TextField label="Flow" required value={flow} onChange={chooseFlow} among={(flows.data ?? []).map((each) => each.name)} problem={flow && flows.data && !isKnown ? `There is no flow ${flow}` : null} hint="Which one is started." />
          <div className="two-fields">
            <SelectField label="When" value={how} onChange={setHow} choices={[["cron", "At times (cron)"], ["every", "At intervals"]]} />
            {how === "cron" ? <TextField label="Times" mono value={cron} onChange={setCron} hint="Minute, hour, day, month, weekday." /> : <TimeField label="Interval" value={every} onChange={setEvery} hint="Such as 15 min or 6 h." />}
          </div>
          {how === "cron" && <TextField label="Time zone" value={timezone} onChange={setTimezone} />}
          <div className="two-fields">
            <SelectField label="After a time without a server, start" value={catchUp} onChange={setCatchUp} choices={CATCH_UP} />
            <SelectField label="While an earlier case runs" value={overlap} onChange={setOverlap} choices={OVERLAP} />
          </div>
          {view.data && Object.keys(view.data.flow?.inputs ?? {}).length > 0 && (
            <>
              <h3>Inputs of {flow}</h3>
              <Inputs
                key={flow}
                view={view.data as FlowView}
                given={spec?.inputs ?? {}}
                act={act}
                onValues={(values, complete) => {
                  setInputs(values);
                  setInputsComplete(complete);
                }}
              />
            </>
          )}
        </div>
      }
      onAct={async () => {
        const body: ScheduleSpec = {
          ...(spec ?? {}),
          name: name.trim(),
          flow,
          inputs,
          cron: how === "cron" ? cron.trim() : "",
          every_ms: how === "every" ? (everyMs ?? 0) : 0,
          timezone: how === "cron" ? timezone.trim() : "",
          catch_up: catchUp,
          overlap,
        };
        await ask(api.PUT("/api/v1/schedules/{name}", { params: { path: { name: body.name } }, body }));
        toast("good", `${body.name} is set`);
        await refresh("schedules");
        onMade(body.name);
      }}
    />
  );
}
