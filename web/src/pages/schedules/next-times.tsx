/** Times that come: how long until then, and the calendar of the schedule's zone; and of the viewer's, where that is another. */
import { moment, zone } from "@/components/format";
import { Time } from "@/components/time";

export function NextTimes({ times, timezone }: { times: readonly number[]; timezone: string }) {
  return (
    <ul className="plain-list" aria-label="Next times">
      {times.map((at) => (
        <li key={at}>
          <Moment at={at} timezone={timezone} /> <span className="muted">· <Time at={at} /></span>
        </li>
      ))}
    </ul>
  );
}

/** Two zones may have the same clock, as Paris and Berlin have; then one is enough. */
export function Moment({ at, timezone }: { at: number; timezone: string }) {
  const there = moment(at, timezone);
  const here = moment(at);
  return (
    <>
      {there}
      {timezone !== zone() && <span className="muted"> {timezone}</span>}
      {here !== there && <span className="muted">, here {here}</span>}
    </>
  );
}
