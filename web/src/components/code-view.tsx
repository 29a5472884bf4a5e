/** Text with colours, read-only or to be edited; CodeMirror is loaded when the first one is shown. */
import { lazy, Suspense } from "react";
import type { CodeProps } from "./code-mirror";

const CodeMirror = lazy(() => import("./code-mirror"));

export type { CodeProblem, CodeCompletion } from "./code-mirror";

export function CodeView(props: CodeProps) {
  return (
    <Suspense fallback={<pre className="code-plain">{props.text}</pre>}>
      <CodeMirror {...props} />
    </Suspense>
  );
}
