/** A tree of rules in the order in which it is walked, with how many decisions took each branch. */
import type { Rule, RuleTree } from "./queries";

export interface WalkedRule {
  rule: Rule;
  /** How many rules above it held on the way to it. */
  depth: number;
  /** By which answer of the rule before one comes to it. */
  side: "root" | "true" | "false";
  parent: number | null;
  /** Of the decisions of this tree: how many asked this rule, for how many it held, and how many it decided. */
  asked: number;
  held: number;
  decided: number;
}

/** A rule that was taken out of use stays in its place and never holds. */
export function isRetired(rule: Rule): boolean {
  return rule.condition.trim() === "false";
}

/** The last rule that held decides. So who decides tells the whole walk: the rules above it on whose true side it stands
 * have held, and what is asked after it has not. */
export function walkTree(tree: RuleTree, decided: (rule: number) => number): WalkedRule[] {
  const rules = new Map(Object.values(tree.rules).map((rule) => [rule.id, rule]));
  const below = decidedBelow(rules, tree.root ?? 0, decided);
  const found: WalkedRule[] = [];
  type Place = { id: number; depth: number; side: WalkedRule["side"]; parent: number | null; asked: number };
  const open: Place[] = [{ id: tree.root ?? 0, depth: 0, side: "root", parent: null, asked: below.get(tree.root ?? 0) ?? 0 }];
  const seen = new Set<number>();
  while (open.length) {
    const place = open.pop() as Place;
    const rule = rules.get(place.id);
    if (!rule || seen.has(place.id)) continue;
    seen.add(place.id);
    const own = decided(rule.id);
    const held = own + (rule.on_true != null ? (below.get(rule.on_true) ?? 0) : 0);
    found.push({ rule, depth: place.depth, side: place.side, parent: place.parent, asked: place.asked, held, decided: own });
    if (rule.on_false != null) open.push({ id: rule.on_false, depth: place.depth, side: "false", parent: rule.id, asked: Math.max(0, place.asked - held) });
    if (rule.on_true != null) open.push({ id: rule.on_true, depth: place.depth + 1, side: "true", parent: rule.id, asked: held });
  }
  return found;
}

function decidedBelow(rules: Map<number, Rule>, root: number, decided: (rule: number) => number): Map<number, number> {
  const sums = new Map<number, number>();
  const order: number[] = [];
  const open = [root];
  const seen = new Set<number>();
  while (open.length) {
    const id = open.pop() as number;
    const rule = rules.get(id);
    if (!rule || seen.has(id)) continue;
    seen.add(id);
    order.push(id);
    if (rule.on_true != null) open.push(rule.on_true);
    if (rule.on_false != null) open.push(rule.on_false);
  }
  for (const id of order.toReversed()) {
    const rule = rules.get(id) as Rule;
    const inner = [rule.on_true, rule.on_false].map((each) => (each == null ? 0 : (sums.get(each) ?? 0)));
    sums.set(id, decided(id) + inner.reduce((one, other) => one + other, 0));
  }
  return sums;
}

/** The rules that are asked before the one with this number, from the root on. */
export function pathTo(walked: readonly WalkedRule[], id: number): number[] {
  const parents = new Map(walked.map((each) => [each.rule.id, each.parent]));
  const path: number[] = [];
  for (let at: number | null | undefined = id; at != null && path.length < 100_000; at = parents.get(at)) path.unshift(at);
  return path;
}

export interface TreePlace {
  type: string;
  task: string;
  tree: RuleTree;
}

export function treesOf(trees: Record<string, Record<string, RuleTree>> | undefined): TreePlace[] {
  return Object.entries(trees ?? {}).flatMap(([type, tasks]) =>
    Object.entries(tasks)
      .filter(([, tree]) => Object.keys(tree.rules).length > 0)
      .map(([task, tree]) => ({ type, task, tree })),
  );
}

export function treeKey(type: string, task: string): string {
  return `${type}/${task}`;
}

/** Words for a tree: `abort of send`, `abort of any task`, `case-pre`. */
export function treeWords(type: string, task: string): string {
  return task === "" ? type : `${type} of ${task === "*" ? "any task" : task}`;
}

/** A rule where its tree is not in sight: `rule 1 for align of night`. Each tree counts its rules from 1. */
export function ruleWords(said: { rules: string; rule: number | null | undefined; type: string; task: string }, word: "rule" | "Rule" = "rule"): string {
  const { rules, rule, type, task } = said;
  const place = task === "*" ? "any task" : task;
  return `${word} ${rule} for ${!place ? type : type === "abort" ? place : `${type} of ${place}`} of ${setWords(rules)}`;
}

export function setWords(name: string): string {
  return name === "*" ? "the default rules" : name;
}
