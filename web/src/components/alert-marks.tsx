/** How urgent an alert is, and who has seen it. */
import { api, ask } from "@/api/client";
import { useMay } from "@/api/session";
import { useAct } from "./acts";
import type { Alert } from "./alert-actions";
import { Icon } from "./icon";
import type { IconName } from "./icon-paths";
import { personText } from "./person-text";
import { Time } from "./time";

const MARKS: Record<Alert["severity"], { icon: IconName; tone: string }> = { critical: { icon: "stop", tone: "failed" }, warning: { icon: "failures", tone: "warning" }, info: { icon: "bell", tone: "ready" } };

export function AlertBadge({ severity }: { severity: Alert["severity"] }) {
  const { icon, tone } = MARKS[severity];
  return (
    <span className={`state-badge alert-${tone}`} data-icon={icon}>
      <Icon name={icon} size={14} />
      {severity}
    </span>
  );
}

/** What somebody has seen comes last; the rest stays in its order. */
export function unseenFirst<Each extends Pick<Alert, "acknowledged_at">>(alerts: readonly Each[]): Each[] {
  return alerts.toSorted((one, other) => Number(one.acknowledged_at > 0) - Number(other.acknowledged_at > 0));
}

/** Who has seen it; else the act by which one says so. */
export function AlertSeen({ alert }: { alert: Alert }) {
  const mayAcknowledge = useMay("acknowledge");
  const act = useAct("alerts", "overview");
  if (alert.acknowledged_at) {
    return (
      <span className="muted">
        seen by {personText(alert.acknowledged_by)} <Time at={alert.acknowledged_at} />
      </span>
    );
  }
  if (alert.kind === "message") return <span className="muted">a message</span>;
  if (alert.closed_at) return <span className="muted">over</span>;
  if (!mayAcknowledge) return <span className="muted">seen by nobody yet</span>;
  return (
    <button type="button" className="link-button" onClick={() => void act(() => ask(api.POST("/api/v1/acknowledged/{alert}", { params: { path: { alert: alert.id } } })), "Others see that you have seen it")}>
      I have seen it
    </button>
  );
}
