/** Edges that say nothing but an order which others say already. Of a chain in which the last step also uses what the first one
 * left, the chain remains, and stands in one line. */

interface Line {
  source: string;
  target: string;
  kind?: string;
  note?: string;
}

/** Without edges past steps that lie between anyway. What says something of its own, as a condition or a repair does, remains, and
 * so does everything where steps go in a circle. */
export function withoutTransitiveEdges<Edge extends Line>(edges: readonly Edge[]): Edge[] {
  const after = new Map<string, Set<string>>();
  for (const { source, target } of edges) after.set(source, (after.get(source) ?? new Set()).add(target));
  const reached = new Map<string, Set<string> | null>();
  /** All that comes after a step; undefined where there is a circle. */
  const allAfter = (id: string): Set<string> | undefined => {
    const known = reached.get(id);
    if (known !== undefined) return known ?? undefined;
    reached.set(id, null);
    const found = new Set<string>();
    for (const next of after.get(id) ?? []) {
      const further = allAfter(next);
      if (!further) return undefined;
      for (const each of [next, ...further]) found.add(each);
    }
    reached.set(id, found);
    return found;
  };
  for (const id of after.keys()) if (!allAfter(id)) return [...edges];
  const isShortcut = ({ source, target }: Line) => [...(after.get(source) ?? [])].some((next) => next !== target && reached.get(next)?.has(target));
  return edges.filter((edge) => edge.note || edge.kind === "repair" || !isShortcut(edge));
}
