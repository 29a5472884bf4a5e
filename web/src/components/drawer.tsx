/** Details beside a list: the list stays where it is and can be walked on. */
import { useEffect, useRef, type ReactNode } from "react";
import { Icon } from "./icon";

/** A list, and a pane with details of one of its rows beside it. On a narrow screen the pane covers the list. */
export function WithDetails(props: { children: ReactNode; details: ReactNode | null }) {
  return (
    <div className={props.details ? "with-details open" : "with-details"}>
      <div className="with-details-list">{props.children}</div>
      {props.details}
    </div>
  );
}

export function DetailsPane(props: { title: ReactNode; label: string; onClose: () => void; actions?: ReactNode; children: ReactNode }) {
  const pane = useRef<HTMLElement>(null);
  const { onClose } = props;
  useEffect(() => {
    const element = pane.current;
    const escape = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !event.defaultPrevented) onClose();
    };
    element?.addEventListener("keydown", escape);
    return () => element?.removeEventListener("keydown", escape);
  }, [onClose]);
  return (
    <aside className="details-pane" aria-label={props.label} ref={pane}>
      <header className="details-head">
        <h2>{props.title}</h2>
        {props.actions}
        <button type="button" className="icon-button" aria-label="Close details" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <div className="details-body" tabIndex={0} role="region" aria-label={`${props.label}, content`}>
        {props.children}
      </div>
    </aside>
  );
}
