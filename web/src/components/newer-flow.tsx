/** A case keeps the version of the flow that it began with; who runs it again may want the one that was corrected since. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { flowQuery, type CaseView } from "@/api/queries";
import { useMay } from "@/api/session";

/** The version of its flow that was deployed since the case began; 0 if it has the newest. */
function useNewerVersion(view: CaseView | undefined): number {
  const mayBegin = useMay("start") && view !== undefined && view.ended_at > 0 && !view.parent && !view.mends && !view.engine;
  const flow = useQuery({ ...flowQuery(view?.flow ?? ""), enabled: mayBegin, retry: false }).data;
  if (!mayBegin || !flow || flow.tentative || flow.digest === view.digest || flow.deployed_at < view.started_at) return 0;
  return flow.version;
}

export function NewerFlow({ view, before, after = "", onOpen }: { view: CaseView | undefined; before: string; after?: string; onOpen?: () => void }) {
  const version = useNewerVersion(view);
  if (!version || !view) return null;
  return (
    <span>
      {before}{" "}
      <Link to="/run/$flow" params={{ flow: view.flow }} search={{ inputs_of: view.id }} onClick={onOpen}>
        start version {version} with these inputs
      </Link>
      {after}
    </span>
  );
}
