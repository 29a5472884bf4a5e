/** Repairs to choose from, each with how often it has helped: against this cause, and at all. */
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { plural } from "@/components/format";
import { triedAndHelped } from "./decision-words";
import { exletResultsQuery, ruleSetQuery, type FailureGroup, type Flow } from "./queries";
import { stepWords } from "./exlets";

export interface Repair {
  name: string;
  flow: Flow;
  /** Of the flow's own rules, or of the default rules. */
  own: boolean;
  here: { tried: number; helped: number };
  all: { tried: number; helped: number };
}

export function useRepairs(flow: string, group: FailureGroup | undefined): Repair[] {
  const own = useQuery(ruleSetQuery(flow));
  const defaults = useQuery(ruleSetQuery("*"));
  const results = useQuery(exletResultsQuery);
  const known = !own.isPending && !defaults.isPending && !results.isPending;
  const order = useRef<{ flow: string; names: string[] } | null>(null);
  const exlets = { ...defaults.data?.rules?.exlets, ...own.data?.rules?.exlets };
  const repairs = Object.entries(exlets)
    .map(([name, each]) => {
      const handled = (group?.handled ?? []).filter((one) => one.exlet === name && !one.passive);
      const result = results.data?.find((one) => one.exlet === name);
      return {
        name,
        flow: each,
        own: Object.hasOwn(own.data?.rules?.exlets ?? {}, name),
        here: handled.map(triedAndHelped).reduce((all, one) => ({ tried: all.tried + one.tried, helped: all.helped + one.helped }), { tried: 0, helped: 0 }),
        all: { tried: result?.known ?? 0, helped: result?.recovered ?? 0 },
      };
    })
    .toSorted((one, other) => Number(other.own) - Number(one.own) || rank(other) - rank(one));
  // They keep the order in which they were first shown: no card moves because a repair helped somewhere meanwhile.
  if (known && order.current?.flow !== flow) order.current = { flow, names: repairs.map((each) => each.name) };
  const names = order.current?.names ?? [];
  const place = (repair: Repair) => (names.includes(repair.name) ? names.indexOf(repair.name) : names.length);
  return known ? repairs.toSorted((one, other) => place(one) - place(other)) : [];
}

const LIKELY = ["try-again", "later", "elsewhere", "more-memory", "more-time", "begin-again"];

function rank(repair: Repair): number {
  const likely = LIKELY.indexOf(repair.name);
  return repair.here.helped * 100 - (repair.here.tried - repair.here.helped) * 10 + repair.all.helped + (likely >= 0 ? (LIKELY.length - likely) / 10 : 0);
}

const FIRST = 6;

export function RepairCards(props: { repairs: readonly Repair[]; chosen: string; onChoose: (name: string) => void; onEdit?: (repair: Repair) => void; onCompose?: () => void }) {
  const [every, setEvery] = useState(false);
  const shown = every ? props.repairs : props.repairs.filter((each, at) => at < FIRST || each.own || each.name === props.chosen);
  return (
    <div className="repair-cards" role="radiogroup" aria-label="Repairs">
      {shown.map((each) => (
        <div key={each.name} className="repair-card" data-chosen={each.name === props.chosen || undefined}>
          <button type="button" role="radio" aria-checked={each.name === props.chosen} className="repair-choose" onClick={() => props.onChoose(each.name)}>
            <strong>{each.name}</strong>
            <span className="repair-about">{each.flow.description || stepWords(each.flow).join(", then ") || "an exlet of this set"}</span>
            <span className="repair-helped">{helped(each)}</span>
          </button>
          {props.onEdit && (
            <button type="button" className="link-button repair-edit" aria-label={`Change a copy of ${each.name}`} onClick={() => props.onEdit?.(each)}>
              change a copy
            </button>
          )}
        </div>
      ))}
      {shown.length < props.repairs.length && (
        <button type="button" className="button small quiet repair-more" onClick={() => setEvery(true)}>
          {plural(props.repairs.length - shown.length, "more repair")}
        </button>
      )}
      {props.onCompose && (
        <p className="muted repair-none">
          None fits, such as one that sets a variable? <button type="button" className="link-button" onClick={props.onCompose}>Compose one</button> of single steps.
        </p>
      )}
    </div>
  );
}

function helped(repair: Repair): string {
  if (repair.here.tried) return `helped ${repair.here.helped} of ${plural(repair.here.tried, "time")} here`;
  if (repair.all.tried) return `not tried here; helped ${repair.all.helped} of ${repair.all.tried} elsewhere`;
  return "not tried yet";
}
