/** The end of a job's log with the failing line marked. Text that somebody selects, or a line that is clicked, is told. */
import { useLayoutEffect, useRef } from "react";
import { failingLine } from "./conditions";

export function FailingLog(props: { log: string; message: string; onPick?: (text: string) => void }) {
  const { log, onPick } = props;
  const lines = log.replace(/\n$/, "").split("\n");
  const failing = failingLine(log, props.message);
  const place = useRef<HTMLDivElement>(null);
  // A drag that has selected something ends with a click as well, which is none of its own.
  const hasSelected = useRef(false);
  // It opens where it failed, or at its end.
  useLayoutEffect(() => {
    const box = place.current;
    const at = box?.children[failing >= 0 ? failing : lines.length - 1] as HTMLElement | undefined;
    if (box && at) box.scrollTop = at.offsetTop - box.offsetTop - box.clientHeight / 2;
  }, [log, failing, lines.length]);
  const selected = () => {
    const selection = document.getSelection();
    const text = selection?.toString().trim() ?? "";
    if (!onPick || !selection || !text || !place.current?.contains(selection.anchorNode)) return;
    hasSelected.current = true;
    onPick(text.split("\n")[0] ?? text);
    selection.removeAllRanges();
  };
  return (
    <div className="failing-log" ref={place} onMouseDown={() => (hasSelected.current = false)} onMouseUp={selected} role="group" aria-label="End of the log">
      {lines.map((line, at) => {
        const marked = at === failing;
        const text = line || " ";
        return (
          <div key={at} className={marked ? "failing-log-line failing" : "failing-log-line"}>
            <span className="failing-log-mark" aria-hidden="true">{marked ? "▸" : ""}</span>
            {onPick && line.trim() ? (
              <button
                type="button"
                className="failing-log-text"
                title="Point at this line; or select a part of it"
                aria-label={`${marked ? "Failing line: " : "Line: "}${line.trim()}`}
                onClick={(event) => {
                  const isPressed = event.detail === 0; // by a key
                  if (isPressed || (!hasSelected.current && !document.getSelection()?.toString())) onPick(line.trim());
                }}
              >
                {text}
              </button>
            ) : (
              <span className="failing-log-text">
                {marked && <span className="visually-hidden">Failing line: </span>}
                {text}
              </span>
            )}
          </div>
        );
      })}
    </div>
  );
}
