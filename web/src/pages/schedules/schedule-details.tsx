/** One schedule: when it comes, what became of it, and what can be done. */
import { personText } from "@/components/person-text";
import { TextWithCode } from "@/components/text-with-code";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useAct, useQuestion, useRefresh } from "@/components/acts";
import { FirstRows } from "@/components/and-more";
import { ConfirmDialog } from "@/components/dialog";
import { DetailsPane } from "@/components/drawer";
import { exact, plural, zone } from "@/components/format";
import { TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { JsonTree } from "@/components/json-tree";
import { Menu } from "@/components/menu";
import { Facts } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { ErrorState } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";
import { ScheduleDialog } from "./schedule-dialog";
import { Moment, NextTimes } from "./next-times";
import { exactScheduleQuery, whenText, zoneOf, type Schedule, type ScheduleSpec } from "./queries";
import { rhythmText } from "./rhythms";
import { becameText, catchUpText, overlapText } from "./what-it-does";

type Backfill = Schemas["BackfillView"];

/** `2026-11-17T09:00`, as fields for a date and a time want it, of the viewer's zone. */
function fieldTime(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** Intervals are those of no zone. */
const shownZone = (spec: ScheduleSpec) => (spec.every_ms ? zone() : zoneOf(spec));

function BackfillDialog({ schedule, open, onClose }: { schedule: Schedule; open: boolean; onClose: () => void }) {
  const refresh = useRefresh();
  const [from, setFrom] = useState(() => fieldTime(Date.now() - 7 * 86_400_000));
  const [to, setTo] = useState(() => fieldTime(Date.now()));
  const [plan, setPlan] = useState<Backfill | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const run = (dry: boolean) => {
    const body = { from: new Date(from).toISOString(), to: new Date(to).toISOString(), dry_run: dry };
    return ask(api.POST("/api/v1/schedules/{name}/backfill", { params: { path: { name: schedule.spec.name } }, body }));
  };
  const look = async () => {
    setRefused(null);
    try {
      setPlan(await run(true));
    } catch (error) {
      setPlan(null);
      setRefused(error);
    }
  };
  const missing = plan?.times.filter((each) => !each.case).length ?? 0;
  return (
    <ConfirmDialog
      title={`Past times of ${schedule.spec.name}`}
      act={plan ? `Start ${plural(missing, "case")}` : "Start"}
      open={open}
      onClose={onClose}
      disabled={!missing}
      will={
        <div className="stack">
          <p>A case is started for each due time in between that has none. Look first which these are.</p>
          <div className="two-fields">
            <TextField label="From" type="datetime-local" value={from} onChange={(value) => { setFrom(value); setPlan(null); }} />
            <TextField label="To" type="datetime-local" value={to} onChange={(value) => { setTo(value); setPlan(null); }} />
          </div>
          <button type="button" className="button" disabled={!from || !to} onClick={() => void look()}>
            <Icon name="search" size={14} /> What would start
          </button>
          {refused !== null && <ErrorState error={refused} compact />}
          {plan && <p role="status">{missing ? `${plural(missing, "case")} would be started, one for each of these times:` : "No due time in between lacks its case."}</p>}
          {plan && (
            <ul className="plain-list" aria-label="Due times">
              <FirstRows rows={plan.times} shown={100}>
                {(each) => (
                  <li key={each.due} title={exact(each.due)}>
                    <Moment at={each.due} timezone={shownZone(schedule.spec)} /> {each.case ? <span className="muted">has {each.case}</span> : ""}
                  </li>
                )}
              </FirstRows>
            </ul>
          )}
        </div>
      }
      onAct={async () => {
        const done = await run(false);
        toast("good", `${plural(done.times.length, "time")} will be caught up with`);
        await refresh("schedules", "cases");
      }}
    />
  );
}

export function ScheduleDetails({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const { spec } = schedule;
  const may = useMayAll();
  const act = useAct("schedules", "cases");
  const [question, askFirst] = useQuestion("schedules");
  const [backfilling, setBackfilling] = useState(false);
  const [changing, setChanging] = useState(false);
  const { data: written } = useQuery({ ...exactScheduleQuery(spec.name), enabled: changing, gcTime: 0 });
  const path = { name: spec.name };
  const acts = [
    ...(may("put_schedule") && !schedule.of_flow ? [{ id: "change", label: "Change …", run: () => setChanging(true) }] : []),
    ...(may("backfill_schedule") ? [{ id: "backfill", label: "Catch up with past times …", hint: "Shows first which", run: () => setBackfilling(true) }] : []),
    ...(may("remove_schedule")
      ? [{
          id: "remove", label: "Remove …", danger: true,
          run: () => askFirst({
            title: `Remove ${spec.name}`, act: "Remove", danger: true, done: `${spec.name} is removed`,
            will: "Nothing is started by it any more. Cases that it has started stay.",
            onAct: async () => { await ask(api.DELETE("/api/v1/schedules/{name}", { params: { path } })); onClose(); },
          }),
        }]
      : []),
  ];
  return (
    <DetailsPane
      title={spec.name}
      label={`Schedule ${spec.name}`}
      onClose={onClose}
      actions={
        <>
          {may("trigger_schedule") && (
            <button type="button" className="button small" onClick={() => void act(() => ask(api.POST("/api/v1/schedules/{name}/trigger", { params: { path }, body: {} })), `${spec.name} has started a case`)}>
              <Icon name="run" size={12} /> Start now
            </button>
          )}
          {schedule.state === "paused"
            ? may("resume_schedule") && (
                <button type="button" className="button small" onClick={() => void act(() => ask(api.POST("/api/v1/schedules/{name}/resume", { params: { path } })), `${spec.name} goes on`)}>
                  Resume
                </button>
              )
            : may("pause_schedule") && (
                <button type="button" className="button small" onClick={() => void act(() => ask(api.POST("/api/v1/schedules/{name}/pause", { params: { path } })), `${spec.name} is paused`)}>
                  Pause
                </button>
              )}
          {acts.length > 0 && <Menu label={`More acts on ${spec.name}`} className="icon-button" acts={acts} />}
        </>
      }
    >
      {schedule.problem && <p className="notice"><Icon name="failures" size={14} /> <TextWithCode text={schedule.problem} /></p>}
      {schedule.not_served && <p className="notice"><Icon name="failures" size={14} /> <span>Nothing is started at its times now: <TextWithCode text={schedule.not_served} />.</span></p>}
      <Facts
        facts={[
          ["State", <StateBadge key="state" of={schedule.state === "over" ? "ended" : schedule.state} word={schedule.state} />],
          ["Flow", <Link key="flow" to="/flows/$name" params={{ name: spec.flow }}>{spec.flow}</Link>],
          ["When", <span key="when">{spec.cron && rhythmText(spec.cron)} <span className="mono">{whenText(spec)}</span></span>],
          ["While an earlier case runs", overlapText(spec.overlap, spec.catch_up)],
          ["After a time without a server", catchUpText(spec.catch_up)],
          ["Owner", personText(schedule.owner)],
          ["Made", schedule.of_flow ? "by its flow" : <Time key="made" at={schedule.made_at} />],
          ["Catching up", schedule.backfilling ? plural(schedule.backfilling, "time") : ""],
        ]}
      />
      <section>
        <h3>Next times</h3>
        {schedule.next.length ? (
          <NextTimes times={schedule.next} timezone={shownZone(spec)} />
        ) : (
          <p className="muted">{schedule.state === "paused" ? "None while it is paused." : "None: it is over."}</p>
        )}
      </section>
      {Object.keys(spec.inputs ?? {}).length > 0 && (
        <section>
          <h3>Inputs</h3>
          <JsonTree value={spec.inputs} label="Inputs" />
        </section>
      )}
      <section>
        <h3>What became of its times</h3>
        {schedule.history.length ? (
          <ul className="plain-list" aria-label="What became of its times">
            {schedule.history.map((event, at) => (
              <li key={at}>
                <Time at={event.due || event.at} /> {becameText(event, spec)}
                {(event.count ?? 1) > 1 && ` ${event.count} times`}
                {event.case && <> · <Link to="/cases/$case" params={{ case: event.case }}>{event.case}</Link></>}
                {event.reason && <span className="muted"> · <TextWithCode text={event.reason} /></span>}
              </li>
            ))}
          </ul>
        ) : (
          <p className="muted">None has come yet.</p>
        )}
      </section>
      {question}
      {backfilling && <BackfillDialog schedule={schedule} open onClose={() => setBackfilling(false)} />}
      {changing && written && <ScheduleDialog open spec={{ ...spec, inputs: written.spec.inputs }} onClose={() => setChanging(false)} onMade={() => setChanging(false)} />}
    </DetailsPane>
  );
}
