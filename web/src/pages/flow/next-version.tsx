/** The editor of a flow's next version. It keeps what somebody writes, also where a version is deployed meanwhile. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "@/api/client";
import { flowFileQuery, type FlowView } from "@/api/queries";
import { Loaded } from "@/components/states-of-page";
import { FlowEditor } from "./flow-editor";

interface Props {
  view: Pick<FlowView, "name" | "version" | "digest">;
  onDeployed: (name: string) => void;
}

export function NextVersion({ view, onDeployed }: Props) {
  const query = useQuery(flowFileQuery(view.name));
  return (
    <Loaded query={query} lines={8}>
      {(newest) => <FollowingEditor key={view.name} view={view} newest={newest} onDeployed={onDeployed} />}
    </Loaded>
  );
}

/** It begins with the newest version. Once something is written, it begins anew only when that is asked for. */
function FollowingEditor({ view, newest, onDeployed }: Props & { newest: Schemas["FlowFileView"] }) {
  const [begun, setBegun] = useState({ file: newest, version: view.version });
  const [isWritten, setIsWritten] = useState(false);
  const load = () => {
    setBegun({ file: newest, version: view.version });
    setIsWritten(false);
  };
  // The flow and its file are read one after the other: they agree when both are there.
  const isBehind = newest.digest !== begun.file.digest && newest.digest === view.digest;
  if (isBehind && !isWritten) load();
  return (
    <FlowEditor
      key={begun.file.digest}
      name={view.name}
      version={begun.version}
      before={begun.file}
      onWritten={() => setIsWritten(true)}
      onDeployed={onDeployed}
      meanwhile={
        isBehind && (
          <p className="notice" role="status">
            <span>
              Version {view.version} was deployed meanwhile. What is written here began with version {begun.version}.
            </span>
            <button type="button" className="button small" onClick={load}>
              Load version {view.version}, which replaces what is written here
            </button>
          </p>
        )
      }
    />
  );
}
