/** A line to write a condition in: a plain field until somebody is in it. Then the editor with colours and completion, which
 * is large, is loaded and takes its place, with what was typed by then and the cursor where it was. */
import { useEffect, useRef, useState, type ComponentType } from "react";
import { flushSync } from "react-dom";
import type { CodeProps } from "./code-mirror";

export function LineField(props: CodeProps & { onChange: (text: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [editor, setEditor] = useState<{ shown: ComponentType<CodeProps>; cursor: number | undefined } | null>(null);
  const left = useRef(false);
  useEffect(() => {
    left.current = false;
    return () => {
      left.current = true;
    };
  }, []);
  const load = async () => {
    const { default: shown } = await import("./code-mirror");
    const plain = field.current;
    if (left.current || !plain) return;
    const cursor = document.activeElement === plain ? (plain.selectionStart ?? plain.value.length) : undefined;
    // At once: what is typed in between would go to nobody, or be taken for a key of the page.
    flushSync(() => setEditor({ shown, cursor }));
  };
  if (editor) return <editor.shown {...props} oneLine cursor={editor.cursor} />;
  return (
    <input
      ref={field}
      type="text"
      className="line-field"
      aria-label={props.label}
      placeholder={props.placeholder}
      value={props.text}
      autoComplete="off"
      autoCapitalize="off"
      spellCheck={false}
      onFocus={() => void load().catch(() => undefined)}
      onChange={(event) => props.onChange(event.target.value)}
      onKeyDown={(event) => event.key === "Enter" && props.onEnter?.(event.currentTarget.value)}
    />
  );
}
