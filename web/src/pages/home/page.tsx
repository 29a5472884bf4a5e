import { CommandLine, serverOption } from "@/components/command-line";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { overviewQuery } from "@/api/queries";
import type { Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { AlertsPanel, FailuresPanel, MendedPanel, PilotsPanel, WaitingPanel } from "./panels";
import { CompletedPanel } from "./completed";
import { RunningPanel } from "./running";
import { Tiles } from "./tiles";
import "./home.css";

export type Overview = Schemas["OverviewView"];

export default function HomePage() {
  const query = useQuery(overviewQuery);
  const mayStart = useMay("start");
  return (
    <Page
      title="Home"
      actions={
        mayStart && (
          <Link to="/run" className="button primary">
            <Icon name="run" size={14} /> New run
          </Link>
        )
      }
    >
      <Loaded query={query} lines={8}>
        {(overview) => (isUnused(overview) ? <Unused overview={overview} /> : <Everything overview={overview} />)}
      </Loaded>
    </Page>
  );
}

function isUnused(overview: Overview): boolean {
  return [...Object.values(overview.cases), ...Object.values(overview.inner)].every((count) => count === 0);
}

function Unused({ overview }: { overview: Overview }) {
  const mayStart = useMay("start");
  return (
    <>
      <EmptyState title="Nothing has run here yet" icon="run" action={mayStart && <Link to="/run" className="button primary">Pick a flow and start it</Link>}>
        What runs, what waits and what failed is shown here then. A flow can also be started from a terminal:
        <CommandLine text={`mendflow start flow.yaml ${serverOption()}`} label="Copy the command that starts a flow" />
      </EmptyState>
      <div className="columns">
        <PilotsPanel overview={overview} />
        <AlertsPanel overview={overview} />
      </div>
    </>
  );
}

function Everything({ overview }: { overview: Overview }) {
  return (
    <>
      <Tiles overview={overview} />
      <div className="home-columns">
        <FailuresPanel overview={overview} />
        <RunningPanel />
        <CompletedPanel />
        <WaitingPanel overview={overview} />
        <MendedPanel overview={overview} />
        <PilotsPanel overview={overview} />
        <AlertsPanel overview={overview} />
      </div>
    </>
  );
}
