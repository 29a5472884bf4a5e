/** An alert about a failure names the first of its cause; this says how many there are. What is held has an alert each. */
import { useQuery } from "@tanstack/react-query";
import { overviewQuery } from "@/api/queries";
import type { Alert } from "./alert-actions";
import { number } from "./format";
import { Time } from "./time";

export function OthersOfCause({ alert }: { alert: Alert }) {
  const overview = useQuery({ ...overviewQuery, enabled: alert.kind === "failure" && !alert.closed_at });
  const cause = alert.kind !== "failure" || !alert.group ? undefined : overview.data?.failures.find((each) => each.group === alert.group);
  const open = cause ? cause.unhandled + cause.waiting : 0;
  if (!cause || open < 2) return null;
  return (
    <p className="muted">
      One of {number(open)} failures of this cause that nobody has taken up, the last <Time at={cause.last_at} />
    </p>
  );
}
