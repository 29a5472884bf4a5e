import type { ItemView } from "@/api/queries";
import { duration } from "@/components/format";
import { Duration } from "@/components/time";

/** How long a job ran, all its attempts together, without what it waited for a pilot, a slot or its files; of any other item
    the time since its start. Null if it never ran. */
export function ranMs(item: ItemView, now: number): number | null {
  if (item.kind !== "job" && item.attempts.length === 0) return (item.ended_at || now) - item.created_at;
  let ran: number | null = null;
  for (const each of item.attempts) {
    if (each.end === "returned" || (each.ended_at && !each.started_at && !each.ran_ms)) continue;
    const until = each.ended_at || now;
    ran = (ran ?? 0) + (each.ran_ms || Math.max(until - (each.started_at || each.granted_at), 0));
  }
  return ran;
}

export function Ran({ item }: { item: ItemView }) {
  const open = item.attempts.find((each) => !each.ended_at && each.end !== "returned");
  if (item.kind !== "job" && item.attempts.length === 0) return <Duration from={item.created_at} to={item.ended_at} />;
  if (open) return <Duration from={(open.started_at || open.granted_at) - (ranMs({ ...item, attempts: item.attempts.filter((each) => each !== open) }, 0) ?? 0)} />;
  const ran = ranMs(item, 0);
  return <span className="duration">{ran === null ? "" : duration(ran)}</span>;
}
