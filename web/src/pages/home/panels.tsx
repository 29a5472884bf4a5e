import { CommandLine, serverOption } from "@/components/command-line";
import { Link, type LinkProps } from "@tanstack/react-router";
import { actionsOf } from "@/components/alert-actions";
import { withoutCommands } from "@/components/commands";
import { ActionRow, Sentence } from "@/components/action-buttons";
import { AlertBadge, AlertSeen, unseenFirst } from "@/components/alert-marks";
import { AlertedInputs, CasesOfAlerts } from "@/components/alerted-inputs";
import { OthersOfCause } from "@/components/others-of-cause";
import { number, percent, plural } from "@/components/format";
import { Panel } from "@/components/page";
import { ruleWords, treeKey } from "@/components/recovery/rule-walk";
import { Sparkline } from "@/components/sparkline";
import { StateBadge, StateBar, StateIcon } from "@/components/state-badge";
import { Time } from "@/components/time";
import { Variable } from "@/components/variable-text";
import type { Overview } from "./page";

export function FailuresPanel({ overview }: { overview: Overview }) {
  const { failures } = overview;
  return (
    <Panel title="Failures of the last day, by cause" className="flush" actions={<Link to="/failures">All failures</Link>}>
      {failures.length === 0 && <p className="panel-note muted">Nothing has failed in the last day.</p>}
      <ul className="rows" aria-label="Failures by cause">
        {failures.slice(0, 8).map((failure) => (
          <li key={failure.group}>
            <Link to="/failures/$group" params={{ group: failure.group }} className="home-failure">
              <span className="home-failure-count">{number(failure.count)}</span>
              <span className="home-failure-text" title={failure.message}>
                <Variable text={failure.message} />
              </span>
              <span className="home-failure-note muted">
                <TakenUp failure={failure} />
              </span>
              <Sparkline values={failure.per_hour} label={`${plural(failure.count, "failure")} in 24 hours`} tone="failed" width={72} height={18} />
              <span className="muted home-failure-time">
                <Time at={failure.last_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Of the failures of a cause, those that most want somebody: what waits, else what nobody has taken up, else what came of them. */
function TakenUp({ failure }: { failure: Overview["failures"][number] }) {
  if (failure.waiting > 0) return <StateBadge state="person" word={`${number(failure.waiting)} waiting`} />;
  if (failure.unhandled > 0) return <StateBadge state="failed" word={`${number(failure.unhandled)} unhandled`} />;
  if (failure.told > 0) return <StateBadge state="person" word={`${number(failure.told)} told a person`} />;
  if (failure.rejected > 0) return <StateBadge state="stopped" word={failure.rejected === failure.count ? "by a person" : `${number(failure.rejected)} by a person`} />;
  return (
    <span className="home-came-of">
      {cameOf(failure).map((word) => (
        <StateBadge key={word} state="done" word={word} />
      ))}
    </span>
  );
}

/** What came of failures that nobody has to look after any more; with how many, unless it is the same for all. */
export function cameOf({ count, run_again, settled }: Pick<Overview["failures"][number], "count" | "run_again" | "settled">): string[] {
  const counted = ([[run_again, "run again"], [settled, "settled"], [count - run_again - settled, "handled"]] as const).filter(([each]) => each > 0);
  return counted.map(([each, word]) => (counted.length > 1 ? `${number(each)} ${word}` : word));
}

export function WaitingPanel({ overview }: { overview: Overview }) {
  const { waiting } = overview;
  return (
    <Panel title="What waits, and for what" className="flush">
      {waiting.length === 0 && <p className="panel-note muted">Nothing waits.</p>}
      <ul className="rows">
        {waiting.slice(0, 8).map((each) => (
          <li key={`${each.kind} ${each.reason}`}>
            <WaitingLink waiting={each}>
              <StateIcon state={each.kind === "job" ? "waiting" : each.kind === "retry" ? "repairing" : "person"} />
              <span className="home-waiting-count">{number(each.jobs)}</span>
              <span className="home-waiting-reason">{said(each)}</span>
            </WaitingLink>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

type Waiting = Overview["waiting"][number];

/** What the server says of several, said of one. */
function ofOne(reason: string): string {
  return reason.replace(/^user tasks /, "user task ").replace(/^failures that no rule takes up, and that wait /, "failure that no rule takes up, and that waits ");
}

/** A reason is true of each of those that it is the reason of. */
function said({ kind, jobs, reason }: Waiting): string {
  const ofJobs = (kind === "job" || kind === "retry") && !reason.startsWith("other jobs");
  if (!ofJobs) return jobs === 1 ? ofOne(reason) : reason;
  return jobs === 1 ? `job: ${reason}` : `jobs, each: ${reason}`;
}

/** To exactly those that were counted: jobs of like needs, jobs by a condition or their ids, tasks, or failures that wait. */
function WaitingLink(props: { waiting: Waiting; children: React.ReactNode }) {
  const { kind, samples, where } = props.waiting;
  const link: LinkProps = where
    ? { to: "/jobs", search: { where } }
    : kind === "user-task"
      ? { to: "/worklist" }
      : kind === "person"
        ? { to: "/failures", search: { only: "waiting", since: "all" } }
        : kind === "retry"
          ? { to: "/jobs", search: { where: `id in [${samples.map((id) => `'${id}'`).join(", ")}]` } }
          : { to: "/jobs", search: { like: samples.join(",") } };
  return (
    <Link {...link} className="home-waiting">
      {props.children}
    </Link>
  );
}

export function MendedPanel({ overview }: { overview: Overview }) {
  const { recovered } = overview;
  return (
    <Panel title={recovered.count ? `Mended by itself: ${plural(recovered.count, "failure")}` : "Mended by itself"} className="flush">
      {recovered.count === 0 && <p className="panel-note muted">No rule has mended anything in the last day.</p>}
      <ul className="rows" aria-label="Mended by rules">
        {recovered.by_rule.slice(0, 6).map((each) => (
          <li key={`${each.rules} ${each.type} ${each.tree} ${each.rule} ${each.exlet}`} className="home-mended">
            <span className="home-waiting-count">{number(each.count)}</span>
            <span className="clip">
              <Link to="/rules/$name" params={{ name: each.rules }} search={{ tree: treeKey(each.type, each.tree), rule: each.rule }}>
                {ruleWords({ ...each, task: each.tree })}
              </Link>
            </span>
            <span className="muted clip">{each.exlet}</span>
          </li>
        ))}
      </ul>
      {recovered.count_by_hand > 0 && (
        <>
          <h3 className="home-apart">Mended by hand: {plural(recovered.count_by_hand, "failure")}</h3>
          <ul className="rows" aria-label="Mended by hand">
            {recovered.by_hand.slice(0, 6).map((each) => (
              <li key={`${each.rules} ${each.type} ${each.tree} ${each.rule} ${each.exlet}`} className="home-mended">
                <span className="home-waiting-count">{number(each.count)}</span>
                <span className="clip">{each.rules ? `a person applied ${ruleWords({ ...each, task: each.tree })}` : "a person chose"}</span>
                <span className="muted clip">{each.exlet}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

export function PilotsPanel({ overview }: { overview: Overview }) {
  const { pilots, sites } = overview;
  return (
    <Panel title="Pilots and sites" className="flush" actions={<Link to="/pilots">{plural(pilots.up, "pilot")}</Link>}>
      <div className="home-slots">
        <StateBar counts={{ running: pilots.busy }} rest={Math.max(0, pilots.slots - pilots.busy)} label="Slots" words={`${number(pilots.busy)} of ${plural(pilots.slots, "slot")} busy`} />
        <span className="muted nowrap">
          {pilots.slots ? `${number(pilots.busy)} of ${plural(pilots.slots, "slot")} busy, ${percent(pilots.busy, pilots.slots)}` : "no pilot is connected"}
        </span>
      </div>
      {pilots.slots === 0 && (
        <p className="panel-note muted">
          Jobs need a pilot, started on any machine that reaches this server, or a <Link to="/sites">site</Link> that starts some:
          <CommandLine text={`mendflow pilot ${serverOption()}`} label="Copy the command that starts a pilot" />
        </p>
      )}
      <ul className="rows">
        {sites
          .filter((site) => site.name)
          .map((site) => (
            <li key={site.name} className="home-site">
              <Link to="/sites">{site.name}</Link>
              <StateBadge of={site.state} />
              <span className="muted">{site.note || `${number(site.busy)} of ${plural(site.slots, "slot")} busy`}</span>
            </li>
          ))}
      </ul>
    </Panel>
  );
}

export function AlertsPanel({ overview }: { overview: Overview }) {
  const { alerts } = overview;
  return (
    <Panel title="Alerts" className="flush" actions={<Link to="/administration" search={{ view: "alerts" }}>All alerts</Link>}>
      {alerts.length === 0 && <p className="panel-note muted">Nothing needs attention.</p>}
      <CasesOfAlerts alerts={alerts}>
        <ul className="rows" aria-label="Alerts">
          {unseenFirst(alerts).slice(0, 6).map((alert) => (
            <li key={alert.id} className="home-alert" data-seen={alert.acknowledged_at > 0 || undefined}>
              <AlertBadge severity={alert.severity} />
              <div className="home-alert-text">
                <p title={withoutCommands(alert.sentence)}><Sentence text={withoutCommands(alert.sentence)} /></p>
                <AlertedInputs alert={alert} />
                <OthersOfCause alert={alert} />
                <ActionRow actions={actionsOf(alert).filter((each) => each.kind === "link" || !each.danger)} label={`What can be done: ${alert.subject}`} />
              </div>
              <span className="alert-times">
                <Time at={alert.raised_at} />
                <AlertSeen alert={alert} />
              </span>
            </li>
          ))}
        </ul>
      </CasesOfAlerts>
    </Panel>
  );
}
