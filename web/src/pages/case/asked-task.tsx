/** An item that is a person's work and not done: it waits for a person, and its task is in the worklist. */
import { Link } from "@tanstack/react-router";
import type { ItemView } from "@/api/queries";
import { StateBadge } from "@/components/state-badge";

export function isAsked(item: Pick<ItemView, "kind" | "state">): boolean {
  return item.kind === "user-task" && (item.state === "waiting" || item.state === "running");
}

/** What failed and nobody has taken up waits for a person, as a task does. */
export function ItemState({ item }: { item: ItemView }) {
  return <StateBadge of={isAsked(item) || item.held ? "asked" : item.state} />;
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
