/** Start a flow: a form made from its inputs, and the flow drawn before. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { caseQuery, flowQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import { Page, Panel } from "@/components/page";
import { Loaded } from "@/components/states-of-page";
import { flowOfCaseQuery } from "../case/queries";
import { DrawingOfCase, FlowDrawing } from "../flow/flow-drawing";
import { RunForm, type FlowToRun } from "./run-form";
import "@/styles/resources.css";

const route = getRouteApi("/run/$flow");

function Columns({ project, drawing, children }: { project: string; drawing: ReactNode; children: ReactNode }) {
  const mayStart = useMay("start");
  return (
    <div className="run-columns">
      <Panel title="Inputs">{mayStart ? children : <p>You may look at this flow, and not start it. Ask an administrator for the role of an operator or author in {project || "its project"}.</p>}</Panel>
      <Panel title="What will run" className="flush">
        {drawing}
      </Panel>
    </div>
  );
}

/** With the flow that the case had, whatever is deployed under its name now. */
function RunAgain({ id }: { id: string }) {
  const earlier = useQuery(caseQuery(id));
  const had = useQuery(flowOfCaseQuery(id));
  return (
    <Loaded query={earlier} lines={8}>
      {(found) => (
        <Columns project={found.project} drawing={<DrawingOfCase name={found.flow} id={id} />}>
          <Loaded query={had}>{(flow) => <RunForm key={found.id} flow={flow} earlier={found} runsAgain />}</Loaded>
        </Columns>
      )}
    </Loaded>
  );
}

function StartLike({ flow, id }: { flow: FlowToRun; id: string }) {
  const earlier = useQuery(caseQuery(id));
  const had = useQuery(flowOfCaseQuery(id));
  return <Loaded query={earlier}>{(found) => !had.isPending && <RunForm key={found.id} flow={flow} earlier={found} had={had.data} />}</Loaded>;
}

function Start({ name, inputsOf }: { name: string; inputsOf: string | undefined }) {
  return (
    <Loaded query={useQuery(flowQuery(name))} lines={8}>
      {({ flow, project, version }) => (
        <Columns project={project} drawing={<FlowDrawing name={name} version={version} />}>
          {flow && (inputsOf ? <StartLike key={name} flow={flow} id={inputsOf} /> : <RunForm key={name} flow={flow} />)}
        </Columns>
      )}
    </Loaded>
  );
}

export default function NewRunPage() {
  const { flow } = route.useParams();
  const { rerun_of: rerunOf, inputs_of: inputsOf } = route.useSearch();
  const newest = useQuery({ ...flowQuery(flow), enabled: !rerunOf });
  const had = useQuery({ ...flowOfCaseQuery(rerunOf ?? ""), enabled: Boolean(rerunOf) });
  return (
    <Page
      title={`Run ${flow}${rerunOf ? " again" : ""}`}
      crumbs={<Link to="/run">New run</Link>}
      lead={rerunOf ? had.data?.description : newest.data?.description}
      actions={
        <Link to="/flows/$name" params={{ name: flow }} className="button">
          The flow itself
        </Link>
      }
    >
      {rerunOf ? <RunAgain id={rerunOf} /> : <Start name={flow} inputsOf={inputsOf} />}
    </Page>
  );
}
