/** One flow: drawn, its model, who deployed it, its cases; and a box for its next version. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask } from "@/api/client";
import { flowFileQuery, flowQuery, type FlowView } from "@/api/queries";
import { useMayAll } from "@/api/session";
import { useQuestion } from "@/components/acts";
import { CodeView } from "@/components/code-view";
import { CopyButton } from "@/components/copy-button";
import FlowFile from "@/components/flow-file";
import { Icon } from "@/components/icon";
import { Facts, Page, Panel } from "@/components/page";
import { Loaded } from "@/components/states-of-page";
import { Tabs } from "@/components/tabs";
import { Time } from "@/components/time";
import { FlowDrawing } from "./flow-drawing";
import { NextVersion } from "./next-version";
import { VIEWS } from "./search";
import "@/styles/resources.css";

const route = getRouteApi("/flows/$name");

const VIEW_WORDS = { drawing: "Drawing", file: "File", model: "Model", deployments: "Deployments", edit: "Next version" } as const;

/** Who gave the newest version; what was before is in the record of who did what, for those who may read it. */
function Deployments({ view }: { view: FlowView }) {
  const may = useMayAll();
  return (
    <Panel title={`Version ${view.version}`}>
      <div className="stack">
        <Facts
          facts={[
            ["Deployed by", personText(view.deployed_by)],
            ["When", <Time key="at" at={view.deployed_at} />],
            ["Project", view.project],
            ["Digest", <span key="digest" className="row"><code className="clip">{view.digest}</code><CopyButton text={view.digest} label="Copy the digest" /></span>],
          ]}
        />
        {may("find_audit") ? (
          <p>
            <Link to="/administration" search={{ view: "audit", operation: "deploy" }}>All deployments, in the record of who did what</Link>
          </p>
        ) : (
          <p className="muted">Earlier deployments are in the record of who did what, which administrators may read.</p>
        )}
      </div>
    </Panel>
  );
}

function Model({ view }: { view: FlowView }) {
  const text = JSON.stringify(view.flow, null, 2);
  return (
    <Panel title="The model that the server keeps" actions={<CopyButton text={text} label="Copy the model" />} className="flush">
      <CodeView text={text} label={`Model of ${view.name}`} language="json" />
    </Panel>
  );
}

function FlowViewPage({ view }: { view: FlowView }) {
  const { view: at = "drawing" } = route.useSearch();
  const navigate = route.useNavigate();
  const may = useMayAll();
  const [question, ask_] = useQuestion("flows");
  const views = VIEWS.filter((each) => each !== "edit" || may("deploy"));
  const remove = () =>
    ask_({
      title: `Remove ${view.name}`,
      will: "The flow and what starts it by itself (its schedule, its watched files) are removed. Its cases stay, and those that run go on. It can be deployed again.",
      act: "Remove",
      danger: true,
      done: `${view.name} is removed`,
      onAct: async () => {
        await ask(api.DELETE("/api/v1/flows/{name}", { params: { path: { name: view.name } } }));
        await navigate({ to: "/flows" });
      },
    });
  return (
    <Page
      title={view.name}
      crumbs={<Link to="/flows">Flows</Link>}
      lead={
        <>
          {view.description && <>{view.description} · </>}version {view.version}, deployed by {personText(view.deployed_by)} <Time at={view.deployed_at} />
        </>
      }
      actions={
        <>
          <Link to="/cases" search={{ where: `flow == '${view.name}'` }} className="button">
            Its cases
          </Link>
          {may("remove_flow") && (
            <button type="button" className="button" onClick={remove}>
              Remove …
            </button>
          )}
          {may("start") && (
            <Link to="/run/$flow" params={{ flow: view.name }} className="button primary">
              <Icon name="run" size={14} /> Run
            </Link>
          )}
        </>
      }
    >
      <Tabs label="Views" current={at} tabs={views.map((id) => ({ id, label: VIEW_WORDS[id], link: { to: "/flows/$name", params: { name: view.name }, search: { view: id } } }))} />
      {at === "drawing" && (
        <Panel className="flush">
          <FlowDrawing name={view.name} version={view.version} />
        </Panel>
      )}
      {at === "file" && <FlowFile query={flowFileQuery(view.name)} />}
      {at === "model" && <Model view={view} />}
      {at === "deployments" && <Deployments view={view} />}
      {at === "edit" && may("deploy") && <NextVersion view={view} onDeployed={(name) => void navigate({ to: "/flows/$name", params: { name }, search: {} })} />}
      {question}
    </Page>
  );
}

export default function FlowPage() {
  const { name } = route.useParams();
  const query = useQuery(flowQuery(name));
  if (query.data) return <FlowViewPage view={query.data as FlowView} />;
  return (
    <Page title={name} crumbs={<Link to="/flows">Flows</Link>}>
      <Loaded query={query} lines={6}>{() => null}</Loaded>
    </Page>
  );
}
