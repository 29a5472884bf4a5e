/** A tree of rules, drawn as it is walked: a rule that holds leads to its exceptions, one that does not to the next one.
 * Only the rows are drawn that are seen. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { number } from "@/components/format";
import { isRetired, type WalkedRule } from "./rule-walk";

const ROW_PX = 46;
const INDENT_PX = 26;
const DEPTH_MAX = 14;

export interface GhostRule {
  under: number | null;
  side: "true" | "false" | "";
  condition: string;
  exlet: string;
}

type Row = { kind: "rule"; walked: WalkedRule } | { kind: "ghost"; ghost: GhostRule; depth: number; side: WalkedRule["side"] };

/** The rows with the new rule in its place: below the rule that it is under, after all of that rule's exceptions if it is on
 * the false side. */
export function rowsWith(walked: readonly WalkedRule[], ghost: GhostRule | undefined): Row[] {
  const rows: Row[] = walked.map((each) => ({ kind: "rule", walked: each }));
  if (!ghost) return rows;
  const at = walked.findIndex((each) => each.rule.id === ghost.under);
  const parent = walked[at];
  if (!parent) return [{ kind: "ghost", ghost, depth: 0, side: "root" }, ...rows];
  if (ghost.side === "true") {
    rows.splice(at + 1, 0, { kind: "ghost", ghost, depth: parent.depth + 1, side: "true" });
    return rows;
  }
  let end = at + 1;
  while (end < walked.length && (walked[end] as WalkedRule).depth > parent.depth) end += 1;
  rows.splice(end, 0, { kind: "ghost", ghost, depth: parent.depth, side: "false" });
  return rows;
}

export function RuleTreeView(props: { walked: readonly WalkedRule[]; label: string; ghost?: GhostRule; path?: readonly number[]; at?: number; onOpen?: (rule: number) => void; height?: number; tried?: (rule: number) => number }) {
  const rows = rowsWith(props.walked, props.ghost);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, overscan: 10 });
  const target = rows.findIndex((each) => (each.kind === "ghost" ? true : !props.ghost && each.walked.rule.id === props.at));
  useEffect(() => {
    if (target >= 0) virtual.scrollToIndex(target, { align: "auto" });
  }, [target, virtual]);
  const onPath = new Set(props.path);
  return (
    <div className="rule-tree" ref={scroller} role="region" aria-label={props.label} tabIndex={0} style={props.height ? { maxHeight: props.height } : undefined}>
      <div style={{ height: virtual.getTotalSize(), position: "relative" }} role="list">
        {virtual.getVirtualItems().map((place) => {
          const row = rows[place.index] as Row;
          const depth = Math.min(DEPTH_MAX, row.kind === "rule" ? row.walked.depth : row.depth);
          const side = row.kind === "rule" ? row.walked.side : row.side;
          return (
            <div key={row.kind === "rule" ? row.walked.rule.id : "ghost"} role="listitem" className="rule-row" style={{ transform: `translateY(${place.start}px)`, paddingLeft: 10 + depth * INDENT_PX }} data-path={row.kind === "rule" && onPath.has(row.walked.rule.id) ? "" : undefined}>
              {Array.from({ length: depth }, (_, level) => (
                <span key={level} className="rule-rail" style={{ left: 20 + level * INDENT_PX }} aria-hidden="true" />
              ))}
              <span className={`rule-branch ${side}`} title={side === "true" ? "asked if the rule above holds" : side === "false" ? "asked if the rule before does not hold" : "asked first"}>
                {side === "true" ? "yes" : side === "false" ? "no" : "first"}
              </span>
              {row.kind === "rule" ? <RuleRow walked={row.walked} tried={props.tried?.(row.walked.rule.id)} at={props.at === row.walked.rule.id} onOpen={props.onOpen} /> : <GhostRow ghost={row.ghost} />}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function RuleRow({ walked, tried, at, onOpen }: { walked: WalkedRule; tried: number | undefined; at: boolean; onOpen?: (rule: number) => void }) {
  const { rule } = walked;
  const retired = isRetired(rule);
  const content = (
    <>
      <span className="rule-line">
        <span className="rule-number">{rule.id}</span>
        <code className="rule-condition clip" title={rule.condition}>{retired ? "out of use" : rule.condition}</code>
        {rule.passive && <span className="chip trial">on trial</span>}
      </span>
      <span className="rule-line second">
        <span className="rule-does" title={rule.exlet || undefined}>{rule.exlet ? <>→ <strong>{rule.exlet}</strong></> : <span className="muted">→ nothing</span>}</span>
        {rule.passive && tried !== undefined ? <span className="rule-counts">{tried ? `would have decided ${number(tried)}` : "has not held yet"}</span> : <span className="rule-counts" title={`since it does ${rule.exlet || "nothing"}: asked ${walked.asked} times: held ${walked.held} times, not ${walked.asked - walked.held} times, and decided ${walked.decided}`}>
          <span className="rule-hits" aria-hidden="true">
            <span style={{ flexGrow: walked.held }} className="hit" />
            <span style={{ flexGrow: Math.max(0, walked.asked - walked.held) }} className="miss" />
          </span>
          {walked.asked ? `held ${number(walked.held)}, not ${number(walked.asked - walked.held)}` : "not asked yet"}
          {walked.decided > 0 && ` · decided ${number(walked.decided)}`}
        </span>}
        {rule.note && <span className="muted clip">{rule.note}</span>}
      </span>
    </>
  );
  if (!onOpen) return <div className={retired ? "rule-card retired" : "rule-card"}>{content}</div>;
  return (
    <button type="button" className={retired ? "rule-card retired" : "rule-card"} aria-current={at || undefined} onClick={() => onOpen(rule.id)}>
      {content}
    </button>
  );
}

function GhostRow({ ghost }: { ghost: GhostRule }) {
  return (
    <div className="rule-card ghost">
      <span className="rule-line">
        <span className="rule-number">new</span>
        <code className="rule-condition clip">{ghost.condition || "…"}</code>
      </span>
      <span className="rule-line second">→ <strong>{ghost.exlet || "…"}</strong></span>
    </div>
  );
}
