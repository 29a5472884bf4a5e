/** Start a flow: a form made from its inputs, and the flow drawn before. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { exactCaseQuery, exactFlowQuery, flowQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import { Page, Panel } from "@/components/page";
import { Loaded } from "@/components/states-of-page";
import { exactFlowOfCaseQuery, flowOfCaseQuery } from "../case/queries";
import { DrawingOfCase, FlowDrawing } from "../flow/flow-drawing";
import { RunForm, type FlowToRun } from "./run-form";
import { TableForm } from "./table-form";
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
  const earlier = useQuery(exactCaseQuery(id));
  const had = useQuery(exactFlowOfCaseQuery(id));
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

function StartLike({ flow, version, id }: { flow: FlowToRun; version: number; id: string }) {
  const earlier = useQuery(exactCaseQuery(id));
  const had = useQuery(exactFlowOfCaseQuery(id));
  return <Loaded query={earlier}>{(found) => !had.isPending && <RunForm key={found.id} flow={flow} version={version} earlier={found} had={had.data} />}</Loaded>;
}

function StartSeveral({ name }: { name: string }) {
  return <Loaded query={useQuery(exactFlowQuery(name))} lines={8}>{({ flow }) => flow && <TableForm key={name} flow={flow} />}</Loaded>;
}

function Start({ name, inputsOf }: { name: string; inputsOf: string | undefined }) {
  return (
    <Loaded query={useQuery(exactFlowQuery(name))} lines={8}>
      {({ flow, project, version }) => (
        <Columns project={project} drawing={<FlowDrawing name={name} version={version} />}>
          {flow && (inputsOf ? <StartLike key={name} flow={flow} version={version} id={inputsOf} /> : <RunForm key={name} flow={flow} />)}
        </Columns>
      )}
    </Loaded>
  );
}

export default function NewRunPage() {
  const { flow } = route.useParams();
  const { rerun_of: rerunOf, inputs_of: inputsOf, table } = route.useSearch();
  const mayStart = useMay("start");
  const isTable = Boolean(table) && mayStart && !rerunOf;
  const newest = useQuery({ ...flowQuery(flow), enabled: !rerunOf });
  const had = useQuery({ ...flowOfCaseQuery(rerunOf ?? ""), enabled: Boolean(rerunOf) });
  return (
    <Page
      title={`Run ${flow}${rerunOf ? " again" : ""}`}
      crumbs={<Link to="/run">New run</Link>}
      lead={rerunOf ? had.data?.description : newest.data?.description}
      actions={
        <>
          {mayStart && !rerunOf && (
            <Link to="/run/$flow" params={{ flow }} search={isTable ? {} : { table: true }} className="button">
              {isTable ? "One case" : "Several from a table"}
            </Link>
          )}
          <Link to="/flows/$name" params={{ name: flow }} className="button">
            The flow itself
          </Link>
        </>
      }
    >
      {rerunOf ? <RunAgain id={rerunOf} /> : isTable ? <StartSeveral name={flow} /> : <Start name={flow} inputsOf={inputsOf} />}
    </Page>
  );
}
