import type { CaseView } from "@/api/queries";
import { JsonTree } from "@/components/json-tree";
import { Facts, Panel } from "@/components/page";
import { EmptyState } from "@/components/states-of-page";
import { Files } from "./files";

export default function DataView({ view }: { view: CaseView }) {
  const given = Object.keys(view.inputs).length > 0;
  const made = Object.keys(view.outputs).length > 0;
  return (
    <div className="case-scroll">
      <div className="columns">
        <Panel title="Inputs">{given ? <JsonTree value={view.inputs} label="Inputs" /> : <EmptyState title="It was given nothing" />}</Panel>
        <Panel title="Outputs">
          {made ? <JsonTree value={view.outputs} label="Outputs" /> : <EmptyState title={view.ended_at ? "It gave nothing" : "It gives its outputs when it is done"} />}
        </Panel>
      </div>
      <div className="columns">
        <Files title="Files that it was given" value={view.inputs} of={view.id} />
        <Files title="Files that it gave" value={view.outputs} of={view.id} />
      </div>
      {view.origin && (
        <Panel title="Where it came from">
          <Facts
            facts={[
              ["Flow file", view.origin.flow],
              ["Inputs file", view.origin.inputs_file],
              ["Results go to", view.origin.output_dir],
              ...Object.entries(view.origin.inputs ?? {}).map(([name, path]): [string, string] => [name, path]),
            ]}
          />
        </Panel>
      )}
    </div>
  );
}
