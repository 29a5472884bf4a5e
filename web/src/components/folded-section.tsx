/** A part of a page that most do not need: folded away under a line that says what it is. */
import { useState, type ReactNode } from "react";
import { Icon } from "./icon";

export function FoldedSection({ title, children }: { title: string; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <div className="folded-section">
      <button type="button" className="folded-section-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} size={12} /> {title}
      </button>
      {open && children}
    </div>
  );
}
