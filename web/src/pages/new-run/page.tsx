/** Start a flow: a form made from its inputs, and the flow drawn before. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { caseQuery, flowQuery, type FlowView } from "@/api/queries";
import { useMay } from "@/api/session";
import { Page, Panel } from "@/components/page";
import { Loaded } from "@/components/states-of-page";
import { FlowDrawing } from "../flow/flow-drawing";
import { RunForm } from "./run-form";
import "@/styles/resources.css";

const route = getRouteApi("/run/$flow");

function Started({ view, rerunOf, inputsOf }: { view: FlowView; rerunOf: string | undefined; inputsOf: string | undefined }) {
  const mayStart = useMay("start");
  const id = rerunOf ?? inputsOf;
  const earlier = useQuery({ ...caseQuery(id ?? ""), enabled: Boolean(id) });
  if (!mayStart) return <p>You may look at this flow, and not start it. Ask an administrator for the role of an operator or author in {view.project || "its project"}.</p>;
  if (!id) return <RunForm view={view} />;
  return <Loaded query={earlier}>{(found) => <RunForm key={found.id} view={view} earlier={found} runsAgain={Boolean(rerunOf)} />}</Loaded>;
}

export default function NewRunPage() {
  const { flow } = route.useParams();
  const { rerun_of: rerunOf, inputs_of: inputsOf } = route.useSearch();
  const query = useQuery(flowQuery(flow));
  return (
    <Page
      title={`Run ${flow}`}
      crumbs={<Link to="/run">New run</Link>}
      lead={query.data?.description}
      actions={
        <Link to="/flows/$name" params={{ name: flow }} className="button">
          The flow itself
        </Link>
      }
    >
      <Loaded query={query} lines={8}>
        {(view) => (
          <div className="run-columns">
            <Panel title="Inputs">
              <Started key={flow} view={view as FlowView} rerunOf={rerunOf} inputsOf={inputsOf} />
            </Panel>
            <Panel title="What will run" className="flush">
              <FlowDrawing name={flow} version={view.version} />
            </Panel>
          </div>
        )}
      </Loaded>
    </Page>
  );
}
