import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { caseQuery } from "@/api/queries";
import { caseState, wordOf } from "@/api/states";
import { CaseProgress, FailedItems, failedText } from "@/components/case-progress";
import { DetailsPane } from "@/components/drawer";
import { effectiveInputs, InputsTree } from "@/components/case-inputs";
import { JsonTree } from "@/components/json-tree";
import { Facts, Panel } from "@/components/page";
import { Loaded } from "@/components/states-of-page";
import { StateBadge } from "@/components/state-badge";
import { WaitsForPerson } from "@/components/task-link";
import { Duration, Time } from "@/components/time";
import { Why } from "@/components/why";

/** A case beside the list: how it is, why, and what it was given. */
export function CaseDetails({ id, onClose }: { id: string; onClose: () => void }) {
  const query = useQuery(caseQuery(id));
  return (
    <DetailsPane
      label={`Case ${id}`}
      title={id}
      onClose={onClose}
      actions={
        <Link to="/cases/$case" params={{ case: id }} className="button small">
          Open
        </Link>
      }
    >
      <Loaded query={query}>
        {(view) => (
          <>
            <Why subject={id} />
            <Facts
              facts={[
                ["State", <StateBadge key="state" state={caseState(view)} word={caseState(view) === "stopped" ? wordOf(view.status) : undefined} />],
                ["Task", view.status === "running" && view.tasks_open > 0 && <WaitsForPerson key="waits" view={view} />],
                ["Flow", <Link key="flow" to="/flows/$name" params={{ name: view.flow }}>{view.flow}</Link>],
                ["Started", <Time key="started" at={view.started_at} />],
                [view.ended_at ? "Took" : "So far", <Duration key="took" from={view.started_at} to={view.ended_at} />],
                ["Started by", personText(view.owner)],
                ["Schedule", view.schedule && <Link key="schedule" to="/schedules" search={{ name: view.schedule }}>{view.schedule}</Link>],
                ["Failed", failedText(view) && <FailedItems key="failed" view={view} />],
                ["Items", <CaseProgress key="items" view={view} />],
                ["Runs again", view.stands_for && <Link key="again" to="/cases/$case" params={{ case: view.stands_for }}>{view.stands_for}</Link>],
                ["Uses results of", !view.stands_for && view.rerun_of && <Link key="rerun" to="/cases/$case" params={{ case: view.rerun_of }}>{view.rerun_of}</Link>],
              ]}
            />
            {Object.keys(effectiveInputs(view)).length > 0 && (
              <Panel title="Inputs">
                <InputsTree view={view} open={1} of={view.id} />
              </Panel>
            )}
            {Object.keys(view.outputs).length > 0 && (
              <Panel title="Outputs">
                <JsonTree value={view.outputs} label="Outputs" open={1} />
              </Panel>
            )}
          </>
        )}
      </Loaded>
    </DetailsPane>
  );
}
