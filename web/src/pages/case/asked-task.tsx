/** An item that is a person's work and not done: it waits for a person, and its task is in the worklist. */
import { Link } from "@tanstack/react-router";
import type { ItemView } from "@/api/queries";
import { StateBadge } from "@/components/state-badge";

export function isAsked(item: Pick<ItemView, "kind" | "state">): boolean {
  return item.kind === "user-task" && (item.state === "waiting" || item.state === "running");
}

/** It failed, and nobody has taken that up: the flow waits, as for a person's task. */
function isHeld(item: Pick<ItemView, "state" | "why">): boolean {
  return item.state === "waiting" && item.why.startsWith("it failed, and waits for a person");
}

export function ItemState({ item }: { item: ItemView }) {
  return <StateBadge of={isAsked(item) || isHeld(item) ? "asked" : item.state} />;
}

export function AskedTask({ item }: { item: ItemView }) {
  return (
    <span title={item.why || undefined}>
      waits for a person:{" "}
      <Link to="/worklist/$case/$serial" params={{ case: item.case, serial: String(item.serial) }}>
        the task in the worklist
      </Link>
    </span>
  );
}
