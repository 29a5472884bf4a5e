/** The failing case: its log and its context. A click on a value, or selected text of the log, becomes a part of the
 * condition. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { FoldedSection } from "@/components/folded-section";
import { number } from "@/components/format";
import { JsonTree, type Path } from "@/components/json-tree";
import { Panel } from "@/components/page";
import { pathOf, readTerms, steadyPart, termFor, withTerm, writeTerm } from "@/components/recovery/conditions";
import { decisionWords } from "@/components/recovery/decision-words";
import { FailingLog } from "@/components/recovery/failing-log";
import { failureValuesQuery, type DecisionView, type FailureView, type ValueCount } from "@/components/recovery/queries";
import { distinction, distinguishing, howOften, NO_CONDITIONS_OF, parted, sortedByWeight, splitByKind, valueKindOf, type ValueKind } from "@/components/recovery/distinguishing-values";
import { Loaded, Loading } from "@/components/states-of-page";

/** What the tree begins with: what mostly tells a failure. */
const ORDER = ["fault", "job", "item", "case", "outcome", "history", "site", "capacity", "items", "values", "measures", "event", "sources"];

export function CaseAtHand(props: {
  view: FailureView;
  decision: UseQueryResult<DecisionView>;
  at: string;
  condition: string;
  /** Undefined where there is nothing to point for: the rule is saved. */
  onTerm: ((condition: string) => void) | undefined;
  onCase: (decision: string) => void;
}) {
  const { condition, onTerm } = props;
  const values = useQuery(failureValuesQuery(props.view.group.id));
  const counts = useMemo(() => countsByKey(values.data), [values.data]);
  // Counts that come anew change what stands beside a value, and not where it stands: no value moves under the pointer.
  const placedBy = useFirst(values.data);
  const placing = useMemo(() => countsByKey(placedBy), [placedBy]);
  const first = useMemo(() => new Set(parted(distinguishing(placedBy ?? [])).first), [placedBy]);
  const used = new Set(readTerms(condition).map((each) => each.path));
  const pick = onTerm && ((path: Path, value: unknown) => onTerm(withTerm(condition, termFor(pathOf(path), value))));
  const pickLog = onTerm && ((text: string) => {
    // What is selected is meant as it is; of a whole line only what other cases have too.
    const steady = steadyPart(text);
    onTerm(withTerm(condition, writeTerm("job.log_tail", "contains", JSON.stringify(steady.length >= 6 ? steady : text))));
  });
  const here = values.data?.[0]?.of_here ?? 0;
  // As long as there is nothing to compare with, nothing tells them apart: what is shown is what the failure says.
  const compared = values.data?.some((each) => each.of_elsewhere + each.known_succeeded > 0) ?? false;
  const shared = {
    onPick: pick,
    beside: (path: Path, value: unknown) => {
      if (typeof value === "object" && value !== null) return null;
      const name = pathOf(path);
      const often = counts.get(keyOf(name, value));
      return (
        <>
          {used.has(name) && <span className="chip used">in the condition</span>}
          {often && howOften(often) && <span className={distinction(often) > 0.5 ? "teach-often strong" : "teach-often"}>{howOften(often)}</span>}
        </>
      );
    },
  };
  return (
    <Panel
      title="Case"
      className="teach-case"
      actions={
        <select aria-label="Case at hand" value={props.at} onChange={(event) => props.onCase(event.target.value)}>
          {props.view.samples.map((each) => (
            <option key={each.id} value={each.id}>{decisionWords(each)}</option>
          ))}
          {!props.view.samples.some((each) => each.id === props.at) && <option value={props.at}>{props.decision.data?.id === props.at ? decisionWords(props.decision.data) : "is being read"}</option>}
        </select>
      }
    >
      <Loaded query={props.decision} lines={8}>
        {(decision) => {
          if (values.isPending) return <Loading lines={8} label="Being compared with other failures" />;
          const job = (decision.context["job"] ?? {}) as Record<string, unknown>;
          const log = decision.fault?.log_tail || String(job["log_tail"] ?? "");
          const countOf = (path: string, value: unknown) => placing.get(keyOf(path, value));
          const parts = splitByKind(arranged(decision.context), (path, value) => kindAt(path, value, countOf(path, value), first));
          const weight = (path: string, value: unknown) => distinction(countOf(path, value) ?? NOT_COUNTED);
          return (
            <div className="stack">
              {onTerm && <p className="teach-hint muted">Click a value or a line of the log, or select text: it becomes a part of the condition.</p>}
              {log && <FailingLog log={log} message={decision.fault?.message ?? ""} onPick={pickLog} />}
              {parts.distinguishing && <h3 className="teach-part">{compared ? "What tells these cases apart" : "What the failure says"}</h3>}
              {parts.distinguishing ? <JsonTree {...shared} value={sortedByWeight(parts.distinguishing, weight)} open={9} label="Context of the case" /> : <p className="muted">Nothing that is known tells these cases from others.</p>}
              {parts.more && (
                <FoldedSection title={compared ? "More that tells these cases apart" : "More that the failure says"}>
                  <JsonTree {...shared} value={parts.more} open={2} label="More values" />
                </FoldedSection>
              )}
              {parts.same && (
                <FoldedSection title={here > 1 ? `Also the same in all ${number(here)}` : "Also known of this case"}>
                  <JsonTree {...shared} value={parts.same} open={2} label="Also the same" />
                </FoldedSection>
              )}
              {parts.varies && (
                <FoldedSection title={here > 1 ? "Differs among them, is long, or tells nothing" : "Is long, or tells nothing"}>
                  <JsonTree {...shared} value={parts.varies} open={2} label="The rest" />
                </FoldedSection>
              )}
            </div>
          );
        }}
      </Loaded>
    </Panel>
  );
}

/** The first that there was. */
function useFirst<T>(value: T | undefined): T | undefined {
  const [first, setFirst] = useState(value);
  if (first === undefined && value !== undefined) setFirst(value);
  return first ?? value;
}

function countsByKey(values: readonly ValueCount[] | undefined): Map<string, ValueCount> {
  return new Map((values ?? []).map((each) => [keyOf(each.path, each.value), each]));
}

function keyOf(path: string, value: unknown): string {
  return `${path}=${JSON.stringify(value)}`;
}

/** What a failure is known by is always shown. */
const KNOWN_BY = /^fault\.(name|category|exit_code|signal|message)$/;
const NOT_COUNTED = { here: 0, of_here: 1, elsewhere: 0, of_elsewhere: 0, succeeded: 0, known_succeeded: 0 };

/** `more`: it tells the group apart as well, and stands behind the handful that is shown first. What is not counted is long, or
 * one of very many. */
function kindAt(path: string, value: unknown, count: ValueCount | undefined, first: ReadonlySet<ValueCount>): ValueKind | "more" {
  if (KNOWN_BY.test(path) && !isEmpty(value)) return "distinguishing";
  if (!count || NO_CONDITIONS_OF.test(path)) return "varies";
  const kind = valueKindOf(path, count);
  return kind === "distinguishing" && !first.has(count) ? "more" : kind;
}

/** The context without what is empty and the long command, in an order that begins with what mostly tells. */
function arranged(context: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(context).toSorted((one, other) => place(one) - place(other));
  return Object.fromEntries(names.map((name) => [name, context[name]]).filter(([, value]) => !isEmpty(value)));
}

function place(name: string): number {
  const at = ORDER.indexOf(name);
  return at < 0 ? ORDER.length : at;
}

function isEmpty(value: unknown): boolean {
  return value === null || value === "" || (typeof value === "object" && Object.keys(value as object).length === 0);
}
