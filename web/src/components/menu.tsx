/** A button that opens a list of acts. */
import { Button, Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import type { ReactNode } from "react";
import { Icon } from "./icon";

export interface MenuAct {
  id: string;
  label: string;
  /** What it does, in a few words. */
  hint?: string;
  danger?: boolean;
  disabled?: boolean;
  run: () => void;
}

export function Menu(props: { label: string; children?: ReactNode; acts: readonly MenuAct[]; className?: string }) {
  return (
    <MenuTrigger>
      <Button className={props.className ?? "button"} aria-label={props.children ? undefined : props.label}>
        {props.children ?? <Icon name="more" />}
      </Button>
      <Popover className="popover" placement="bottom end">
        <AriaMenu
          className="menu"
          aria-label={props.label}
          disabledKeys={props.acts.filter((act) => act.disabled).map((act) => act.id)}
          onAction={(id) => props.acts.find((act) => act.id === id)?.run()}
        >
          {props.acts.map((act) => (
            <MenuItem key={act.id} id={act.id} textValue={act.label} className={act.danger ? "menu-item danger" : "menu-item"}>
              <span>{act.label}</span>
              {act.hint && <span className="muted">{act.hint}</span>}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
