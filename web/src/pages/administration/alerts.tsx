import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { alertsQuery } from "@/api/queries";
import { actionsOf, type Alert } from "@/components/alert-actions";
import { AlertBadge, AlertSeen } from "@/components/alert-marks";
import { withoutCommands } from "@/components/commands";
import { ActionRow, Sentence } from "@/components/action-buttons";
import { AlertedInputs, CasesOfAlerts } from "@/components/alerted-inputs";
import { OthersOfCause } from "@/components/others-of-cause";
import { CheckField } from "@/components/form-fields";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";

const route = getRouteApi("/administration");

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
      <AlertBadge severity={alert.severity} />
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
        <AlertSeen alert={alert} />
      </span>
    </li>
  );
}
