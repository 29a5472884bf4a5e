/** The file that a flow was read from, as it was sent but for passwords: with its comments, line numbers, and a button that copies it. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Schemas } from "@/api/client";
import type { caseFlowFileQuery, flowFileQuery } from "@/api/queries";
import { CodeView } from "./code-view";
import { CopyButton } from "./copy-button";
import { asSentence } from "@/api/errors";
import { bytes } from "./format";
import { Panel } from "./page";
import { EmptyState, Loaded } from "./states-of-page";
import { Time } from "./time";

/** `edit` is the way to edit a file of that name. */
export default function FlowFile({ query, edit }: { query: ReturnType<typeof flowFileQuery> | ReturnType<typeof caseFlowFileQuery>; edit?: (file: string) => ReactNode }) {
  const found = useQuery(query as ReturnType<typeof flowFileQuery>);
  return (
    <Loaded query={found} lines={8}>
      {(file) => (
        <>
        {file.text ? (
          <Panel
            title={file.file || file.flow}
            actions={
              <>
                <span className="muted">
                  sent {file.by && `by ${personText(file.by)} `}
                  <Time at={file.at ?? 0} />
                </span>
                <CopyButton text={file.text} label="Copy the file" />
                {edit?.(file.file ?? "")}
              </>
            }
            className="flush"
          >
            <CodeView text={file.text} label={`File of ${file.flow}`} language={languageOf(file.file ?? "")} />
          </Panel>
        ) : (
          <EmptyState title={file.file ? `${file.file} is not shown` : "There is no file to show"} icon="file">
            {asSentence(file.reason || "the file is empty")}.
          </EmptyState>
        )}
        <Beside files={file.beside ?? []} />
        </>
      )}
    </Loaded>
  );
}

/** What was sent with the file, by the names that the flow has for it. */
function Beside({ files }: { files: Schemas["FileBeside"][] }) {
  if (!files.length) return null;
  return (
    <Panel title="Files beside it">
      <ul className="flow-problems" aria-label="Files beside the flow file">
        {files.map(({ path, file }) => (
          <li key={`${path} ${file?.sha256}`}>
            <span className="mono nowrap">{path}</span>
            {file && <span className="muted" title={`SHA-256 ${file.sha256}`}>{bytes(file.bytes)}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const LANGUAGES = { yaml: "yaml", yml: "yaml", json: "json", py: "python", bpel: "xml", xml: "xml", jsdl: "xml" } as const;

function languageOf(file: string) {
  return LANGUAGES[file.slice(file.lastIndexOf(".") + 1) as keyof typeof LANGUAGES] ?? "text";
}
