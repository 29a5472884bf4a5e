/** A button that opens a list of acts. What draws the list is loaded when somebody reaches for a menu. */
import { lazy, Suspense, useState } from "react";
import { Icon } from "./icon";
import type { MenuProps } from "./menu-list";

export interface MenuAct {
  id: string;
  label: string;
  /** What it does, in a few words. */
  hint?: string;
  danger?: boolean;
  disabled?: boolean;
  run: () => void;
}

const load = () => import("./menu-list");
const MenuList = lazy(load);
const loadAhead = () => void load().catch(() => undefined);

export function Menu(props: MenuProps) {
  const [wanted, setWanted] = useState(false);
  const plain = (
    <button
      type="button"
      className={props.className ?? "button"}
      aria-label={props.children ? undefined : props.label}
      aria-haspopup="menu"
      aria-expanded={false}
      onPointerEnter={loadAhead}
      onFocus={loadAhead}
      onClick={() => setWanted(true)}
      onKeyDown={(event) => {
        if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
        event.preventDefault();
        setWanted(true);
      }}
    >
      {props.children ?? <Icon name="more" />}
    </button>
  );
  if (!wanted) return plain;
  return (
    <Suspense fallback={plain}>
      <MenuList {...props} />
    </Suspense>
  );
}
