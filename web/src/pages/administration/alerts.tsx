import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { api, ask } from "@/api/client";
import { alertsQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import { useAct } from "@/components/acts";
import { actionsOf, type Alert } from "@/components/alert-actions";
import { withoutCommands } from "@/components/commands";
import { ActionRow, Sentence } from "@/components/action-buttons";
import { AlertedInputs, CasesOfAlerts } from "@/components/alerted-inputs";
import { OthersOfCause } from "@/components/others-of-cause";
import { CheckField } from "@/components/form-fields";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";

const route = getRouteApi("/administration");
const TONE = { critical: "failed", warning: "repairing", info: "ready" } as const;

export function Alerts() {
  const { every, messages } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(alertsQuery(every === true, messages === true));
  return (
    <div className="stack">
      <div className="row wrap">
        <CheckField label="Those that are over too" checked={every === true} onChange={(checked) => void navigate({ search: (before) => ({ ...before, every: checked || undefined }) })} />
        <CheckField label="Messages too, which need no act" checked={messages === true} onChange={(checked) => void navigate({ search: (before) => ({ ...before, messages: checked || undefined }) })} />
      </div>
      <Loaded query={query}>
        {(alerts) =>
          alerts.length === 0 ? (
            <EmptyState title="Nothing to look at" icon="bell">Alerts come when a case waits for somebody, a pilot is gone, a disk fills, a queue grows. A webhook sends them on.</EmptyState>
          ) : (
            <CasesOfAlerts alerts={alerts}>
              <ul className="rows alert-list" aria-label="Alerts">
                {alerts.map((each) => (
                  <AlertRow key={each.id} alert={each} />
                ))}
              </ul>
            </CasesOfAlerts>
          )
        }
      </Loaded>
    </div>
  );
}

function AlertRow({ alert }: { alert: Alert }) {
  return (
    <li className="alert-row" data-kind={alert.kind}>
      <StateBadge state={TONE[alert.severity]} word={alert.severity} />
      <div className="stack tight">
        <p className="alert-text">
          <Sentence text={withoutCommands(alert.sentence)} />
        </p>
        <AlertedInputs alert={alert} />
        <OthersOfCause alert={alert} />
        <ActionRow actions={actionsOf(alert)} label={`What can be done: ${alert.subject}`} />
      </div>
      <span className="alert-times">
        <Time at={alert.raised_at} />
        <Seen alert={alert} />
      </span>
    </li>
  );
}

function Seen({ alert }: { alert: Alert }) {
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
