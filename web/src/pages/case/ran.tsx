/** How long items and their attempts ran: one definition for the lists, the panes and the timeline. */
import type { ItemView } from "@/api/queries";
import { duration } from "@/components/format";
import { Duration } from "@/components/time";

type Attempt = ItemView["attempts"][number];

/** How long an attempt ran, without what it waited for a pilot, a slot or its files; null if it never began. */
export function attemptMs(attempt: Attempt, now: number): number | null {
  if (attempt.end === "returned" || (attempt.ended_at && !attempt.started_at && !attempt.ran_ms)) return null;
  if (attempt.ended_at && attempt.ran_ms) return attempt.ran_ms;
  return Math.max((attempt.ended_at || now) - (attempt.started_at || attempt.granted_at), 0);
}

/** How long a job ran, all its attempts together; of any other item the time since its start. Null if it never ran. */
export function ranMs(item: ItemView, now: number): number | null {
  if (item.kind !== "job" && item.attempts.length === 0) return (item.ended_at || now) - item.created_at;
  const ran = item.attempts.map((each) => attemptMs(each, now)).filter((ms) => ms !== null);
  return ran.length ? ran.reduce((total, ms) => total + ms, 0) : null;
}

/** How often it was tried. What a pilot gave back before it began was no attempt. */
export function triesOf(item: ItemView): number {
  return item.attempts.filter((each) => each.end !== "returned").length;
}

export function AttemptRan({ attempt }: { attempt: Attempt }) {
  if (!attempt.ended_at && attempt.started_at) return <Duration from={attempt.started_at} />;
  const ran = attempt.ended_at ? attemptMs(attempt, 0) : null;
  return <span className="duration">{ran === null ? "" : duration(ran)}</span>;
}

export function Ran({ item }: { item: ItemView }) {
  const open = item.attempts.find((each) => !each.ended_at && each.end !== "returned");
  if (item.kind !== "job" && item.attempts.length === 0) return <Duration from={item.created_at} to={item.ended_at} />;
  if (open) return <Duration from={(open.started_at || open.granted_at) - (ranMs({ ...item, attempts: item.attempts.filter((each) => each !== open) }, 0) ?? 0)} />;
  const ran = ranMs(item, 0);
  return <span className="duration">{ran === null ? "" : duration(ran)}</span>;
}
