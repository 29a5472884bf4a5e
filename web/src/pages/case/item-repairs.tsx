/** What was done about the failures of an item: by which rule, what that changed, and what came of it. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { whyQuery } from "@/api/queries";
import { Panel } from "@/components/page";
import { cameOf, changes } from "@/components/recovery/decision-words";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import { primitivesOf } from "@/components/recovery/exlets";
import { decisionQuery, ruleSetQuery, type DecisionView, type Flow } from "@/components/recovery/queries";
import { ruleWords, treeKey } from "@/components/recovery/rule-walk";
import { Time } from "@/components/time";
import type { Job } from "../jobs/needs";
import { flowOfCaseQuery, jobQuery } from "./queries";
import { WhereTold } from "./told-notice";

const SHOWN = 10;

/** Only what something was done about. */
export function repairsOf(decisions: readonly DecisionView[]): DecisionView[] {
  return decisions.filter((each) => each.exlet && each.state !== "passive" && each.state !== "waiting");
}

/** The repairs of an item, the newest first. */
export function ItemRepairs({ caseId, item, job }: { caseId: string; item: string; job: string | null | undefined }) {
  const found = repairsOf(useQuery(whyQuery(`${caseId}:${item}`)).data?.repairs ?? []);
  if (!found.length) return null;
  return (
    <Panel title={titleOf(found)}>
      <ul className="stack tight" aria-label="Repairs">
        {found.slice(0, SHOWN).map((each) => (
          <li key={each.id}>
            <RepairText decision={each} />
            {job && each.result !== "told" && <Changed decision={each} job={job} />}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** Nothing is called mended that was not. */
export function titleOf(found: readonly Pick<DecisionView, "result" | "state">[]): string {
  if (found.every((each) => each.result === "told")) return "What was told";
  return found.every((each) => each.result === "failed" || each.state === "failed") ? "What was tried in vain" : "What mended it";
}

/** Rule 3 of the default rules did more-memory: recovered. */
function RepairText({ decision }: { decision: DecisionView }) {
  return (
    <>
      <p>
        <DecidedBy decision={decision} /> did <strong>{decision.exlet}</strong>: {cameOf(decision)} <span className="muted"><RepairTime decision={decision} /></span>
      </p>
      <About decision={decision} />
      <DoneByHand decision={decision} />
      {decision.result === "told" && <WhereTold />}
    </>
  );
}

/** When it came to that, which a repair by hand does long after the failure. */
export function RepairTime({ decision }: { decision: Pick<DecisionView, "at" | "ended_at"> }) {
  return decision.ended_at ? <Time at={decision.ended_at} /> : <>for what failed <Time at={decision.at} /></>;
}

export function DecidedBy({ decision }: { decision: DecisionView }) {
  if (!decision.rules || decision.rule === null) return <>{personText(decision.ordered_by) || "a person"}</>;
  return (
    <>
      <Link to="/rules/$name" params={{ name: decision.rules }} search={{ tree: treeKey(decision.type, decision.tree), rule: decision.rule }}>
        {ruleWords({ ...decision, task: decision.tree })}
      </Link>
      {decision.ordered_by && `, applied by ${personText(decision.ordered_by)},`}
    </>
  );
}

/** The exlet as the rules had it that decided; what a person chose is known by the case that did it. */
export function useExlet(decision: DecisionView | undefined): Flow | undefined {
  const set = useQuery({ ...ruleSetQuery(decision?.rules ?? "", decision?.version || undefined), enabled: Boolean(decision?.rules), retry: false });
  const own = useQuery({ ...flowOfCaseQuery(decision?.exlet_case ?? ""), enabled: Boolean(decision?.exlet_case) && !decision?.rules, retry: false });
  return decision && (set.data?.rules?.exlets?.[decision.exlet] ?? (own.data as Flow | undefined));
}

/** What a person had done by hand: with which values a result came to be stands nowhere else. */
function DoneByHand({ decision }: { decision: DecisionView }) {
  const flow = useExlet(decision.rules ? undefined : decision);
  return flow ? <ExletSteps flow={flow} /> : null;
}

/** What its author says that the exlet does. */
function About({ decision }: { decision: DecisionView }) {
  const description = useExlet(decision)?.description;
  return description ? <p className="muted">{description}</p> : null;
}

/** What the job asks for otherwise since then: of the submission that failed, and of the one after it. */
function Changed({ decision, job }: { decision: DecisionView; job: string }) {
  const flow = useExlet(decision);
  const isSubmitted = decision.state === "done" && primitivesOf(flow).includes("re-submit");
  const failed = useQuery({ ...decisionQuery(decision.id), enabled: isSubmitted }).data?.context["job"] as Record<string, unknown> | undefined;
  const next = `${job}~${Number(failed?.["generation"] ?? 1) + 1}`;
  const after = useQuery({ ...jobQuery(next), enabled: failed !== undefined, retry: false }).data as Job | undefined;
  const said = failed && after ? changes(failed, { ...after.spec.resources }) : [];
  return said.length ? <p>It changed {said.join(", ")}.</p> : null;
}
