import { useQuery } from "@tanstack/react-query";
import type { CaseView } from "@/api/queries";
import { effectiveInputs, InputsTree } from "@/components/case-inputs";
import { JsonTree } from "@/components/json-tree";
import { Facts, Panel } from "@/components/page";
import { EmptyState } from "@/components/states-of-page";
import { Files } from "./files";
import { flowOfCaseQuery } from "./queries";

/** What is known of where it was started: of a case that was started here, nothing. */
function originFacts({ origin }: CaseView): [string, string][] {
  if (!origin) return [];
  const named: [string, string | undefined][] = [["Flow file", origin.flow], ["Inputs file", origin.inputs_file], ["Results go to", origin.output_dir], ...Object.entries(origin.inputs ?? {})];
  return named.filter((each): each is [string, string] => Boolean(each[1]));
}

export default function DataView({ view }: { view: CaseView }) {
  const flow = useQuery({ ...flowOfCaseQuery(view.id), enabled: !view.engine });
  const wanted = flow.data?.inputs ?? {};
  const origin = originFacts(view);
  const made = Object.keys(view.outputs).length > 0;
  return (
    <div className="case-scroll">
      <div className="columns">
        <Panel title="Inputs">
          {Object.keys(effectiveInputs(view, wanted)).length ? <InputsTree view={view} wanted={wanted} of={view.id} /> : <EmptyState title="No inputs" />}
        </Panel>
        <Panel title="Outputs">
          {made ? <JsonTree value={view.outputs} label="Outputs" of={view.id} /> : <EmptyState title={view.ended_at ? "No outputs" : "The outputs are there when it is done"} />}
        </Panel>
      </div>
      <div className="columns">
        <Files title="Input files" value={view.inputs} of={view.id} />
        <Files title="Output files" value={view.outputs} of={view.id} />
      </div>
      {origin.length > 0 && (
        <Panel title="Where it came from">
          <Facts facts={origin} />
        </Panel>
      )}
    </div>
  );
}
