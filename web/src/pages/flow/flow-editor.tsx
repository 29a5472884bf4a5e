/** A box for a flow file: checked while it is written, problems marked where they are; then deployed. */
import { TextWithCode } from "@/components/text-with-code";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { api, ask } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useRefresh } from "@/components/acts";
import { takeChosen } from "@/components/chosen-files";
import { CodeView, type CodeProblem } from "@/components/code-view";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { useSettled } from "@/components/settled";
import { ErrorState } from "@/components/states-of-page";
import { toast } from "@/components/toasts";
import { filesToSend, keptFiles, type FileBeside, type FilesByPath } from "@/components/beside-paths";
import { FilesBeside } from "./files-beside";
import { Picture } from "./flow-drawing";
import { sourceOf } from "./flow-source";

export const TEMPLATE = `name: hello
description: Says hello to everybody
inputs:
  names: {type: list, default: [Ada, Grace], description: Who is greeted}
jobs:
  greet:
    for-each: {name: "\${{ inputs.names }}"}
    run: echo hello \${{ quote(name) }} > greeting.txt
    files: greeting.txt
  together:
    inputs: {parts/: "\${{ jobs.greet.files['greeting.txt'] }}"}
    run: cat parts/*
`;

const NONE: FileBeside[] = [];

interface Props {
  name: string;
  version?: number;
  /** The file of that version, which the next one begins with. Files beside it are kept where the paths are the same. */
  before?: { file?: string; text?: string; beside?: FileBeside[] };
  /** Told when something is written, or added. */
  onWritten?: () => void;
  onDeployed: (name: string) => void;
  /** What somebody should know who writes here, about what others did. */
  meanwhile?: ReactNode;
}

export function FlowEditor({ name, version = 0, before = {}, onWritten, onDeployed, meanwhile }: Props) {
  const may = useMayAll();
  const refresh = useRefresh();
  // Only YAML is read on a server.
  const isYaml = /\.ya?ml$/.test(before.file ?? "");
  const [text, setText] = useState(name ? (isYaml ? before.text ?? "" : "") : TEMPLATE);
  const [file, setFile] = useState((isYaml && before.file) || `${name || "flow"}.yaml`);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const [added, setAdded] = useState<FilesByPath>({});
  const write = (written: string) => {
    onWritten?.();
    setText(written);
  };
  const add = (more: FilesByPath) => {
    onWritten?.();
    setAdded((known) => ({ ...known, ...more }));
  };
  const settled = useSettled(text, 300);
  const [asked, setAsked] = useState<readonly string[]>([]);
  const files = filesToSend(asked, keptFiles(before.beside ?? NONE), added);
  const check = useQuery({
    queryKey: ["flow-check", settled, files],
    queryFn: ({ signal }) => ask(api.POST("/api/v1/flow-checks", { body: { text: settled, name: "flow.yaml", files }, signal })),
    enabled: settled.trim() !== "",
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 30_000,
  });
  const found = settled.trim() && check.data ? check.data : null;
  const named = (check.data?.beside ?? NONE).map((each) => each.path);
  if (check.data && named.join("\n") !== asked.join("\n")) setAsked(named);
  const problems: CodeProblem[] = (found?.problems ?? []).map((each) => ({
    line: each.line || 1,
    column: each.column || 1,
    severity: each.severity === "error" ? "error" : "warning",
    message: each.hint ? `${each.message}; ${each.hint}` : each.message,
  }));
  const errors = problems.filter((each) => each.severity === "error").length;
  const current = settled === text && !check.isPlaceholderData && !check.isFetching;
  const deploy = async (withTriggers: boolean) => {
    if (!found?.flow) return;
    const flow = { ...found.flow, source: sourceOf(file, settled) };
    setBusy(true);
    setRefused(null);
    try {
      if (withTriggers) await ask(api.PUT("/api/v1/flows/{name}", { params: { path: { name: flow.name } }, body: flow as never }));
      else await ask(api.POST("/api/v1/flows", { body: flow as never }));
      const has = flow.triggers ? (withTriggers ? ", and its “on” is in effect" : "; its “on” changed nothing") : "";
      toast("good", `${flow.name} is deployed${has}`);
      await refresh("flows");
      onDeployed(flow.name);
    } catch (error) {
      setRefused(error);
      setBusy(false);
    }
  };
  const model = found?.ok ? found.flow : null;
  return (
    <div className="stack">
      {!busy && meanwhile}
      <Panel
        title="Flow file"
        actions={
            <label className="button small file-button">
              <Icon name="file" size={14} /> Open a file
              <input
                type="file"
                aria-label="Open a flow file"
                accept=".yaml,.yml,.json"
                onChange={(event) => {
                  const [given] = takeChosen(event.target);
                  if (!given) return;
                  setFile(given.name);
                  void given.text().then(write);
                }}
              />
            </label>
        }
      >
        <div className="flow-editor">
          <CodeView text={text} label="Flow file" language="yaml" onChange={write} problems={problems} placeholder={name ? `Paste the file of ${name} here` : "Paste a flow file here"} />
        </div>
        <div className="flow-verdict" role="status">
          {!text.trim() && <span className="muted">Nothing is written yet.</span>}
          {text.trim() && !found && check.isFetching && <span className="muted">Looking at it …</span>}
          {found && !errors && (
            <span className="row">
              <Icon name="check" size={14} /> {found.flow ? `${found.flow.name} has no problems` : "No problems"}
              {problems.length > 0 && `, and ${plural(problems.length, "remark")}`}
            </span>
          )}
          {errors > 0 && (
            <span className="row">
              <Icon name="failures" size={14} /> {plural(errors, "problem")}
            </span>
          )}
        </div>
        {problems.length > 0 && (
          <ul className="flow-problems" aria-label="Problems">
            {(found?.problems ?? []).map((each, at) => (
              <li key={at} data-severity={each.severity}>
                <span className="mono nowrap">{each.line ? `line ${each.line}` : "file"}</span>
                <span>
                  <TextWithCode text={each.message} />
                  {each.hint && <span className="muted"> <TextWithCode text={each.hint} /></span>}
                </span>
              </li>
            ))}
          </ul>
        )}
        {check.isError && <ErrorState error={check.error} compact />}
        {refused !== null && <ErrorState error={refused} compact />}
      </Panel>
      {found && (found.beside ?? NONE).length > 0 && (
        <FilesBeside beside={found.beside ?? NONE} added={added} before={version ? `version ${version}` : "the case"} onAdd={add} />
      )}
      {found?.graph && found.graph.nodes.length > 0 && (
        <Panel title="What it would do" className="flush">
          <div className="flow-canvas" tabIndex={0} role="region" aria-label="Drawing of the flow">
            <Picture graph={found.graph} label="The flow as it is written" />
          </div>
        </Panel>
      )}
      {name && model && model.name !== name && <p className="notice">The file names another flow: {model.name}. That one is deployed, and {name} stays as it is.</p>}
      {model?.triggers && (
        <p className="notice">
          {may("deploy_with_triggers")
            ? `“Deploy ${model.name}” alone leaves what starts its cases, and who is told of their ends, as it is on the server: the “on” of this file takes effect with the second button.`
            : `The “on” of this file does not take effect here: what starts its cases, and who is told of their ends, stays as it is on the server. An administrator can deploy it with its “on”, here or by “mendflow flows deploy”.`}
        </p>
      )}
      <div className="row wrap">
        {may("deploy") && (
          <button type="button" className="button primary" disabled={!model || busy || !current} onClick={() => void deploy(false)}>
            Deploy {model?.name ?? ""}
          </button>
        )}
        {may("deploy_with_triggers") && model?.triggers && (
          <button type="button" className="button" disabled={busy || !current} onClick={() => void deploy(true)}>
            Deploy, and have its “on” take effect
          </button>
        )}
        <span className="muted">Cases that run keep the flow that they were started with.</span>
      </div>
    </div>
  );
}
