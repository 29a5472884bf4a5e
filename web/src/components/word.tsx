/** A word with its explanation: dotted below, and a note that opens on a click, by Enter or Space, and closes by Escape. */
import { useId, useRef, type ReactNode } from "react";
import { explained, glossed, type ExplainedWord } from "./explained-words";
import { TextWithCode } from "./text-with-code";

const GAP_PX = 6;
const EDGE_PX = 8;

export function Word({ of, children }: { of: ExplainedWord; children?: ReactNode }) {
  const { word, sentence } = explained(of);
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const note = useRef<HTMLSpanElement>(null);
  // The note is in the top layer, where nothing clips it: its place is that of the word, kept within the window.
  const place = () => {
    const around = button.current?.getBoundingClientRect();
    const shown = note.current;
    if (!around || !shown?.matches(":popover-open")) return;
    const { width, height } = shown.getBoundingClientRect();
    const below = around.bottom + GAP_PX;
    shown.style.left = `${Math.max(EDGE_PX, Math.min(around.left, window.innerWidth - width - EDGE_PX))}px`;
    shown.style.top = `${below + height > window.innerHeight ? Math.max(EDGE_PX, around.top - height - GAP_PX) : below}px`;
  };
  return (
    <>
      <button ref={button} type="button" className="word" aria-describedby={id} popoverTarget={id} title="What is this?">
        {children ?? of}
      </button>
      <span ref={note} id={id} popover="auto" role="note" className="word-note" onToggle={place}>
        <strong>{word}</strong> <TextWithCode text={sentence} />
      </span>
    </>
  );
}

/** A text whose words are explained where newcomers do not know them, each where it first stands. */
export function Glossed({ text, only }: { text: string; only?: readonly ExplainedWord[] }) {
  return <>{glossed(text, only).map((part, at) => (typeof part === "string" ? part : <Word key={at} of={part.word} />))}</>;
}
