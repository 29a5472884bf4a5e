import { useState } from "react";
import { Icon } from "./icon";

/** Copies a text, and says so for a moment. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" className="icon-button" aria-label={copied ? "Copied" : label} title={label} onClick={() => void copy()}>
      <Icon name={copied ? "check" : "copy"} size={14} />
    </button>
  );
}
