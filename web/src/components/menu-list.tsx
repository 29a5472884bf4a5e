/** The button and the list of a menu that was asked for. Loaded with the first menu. */
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Button, Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { Icon } from "./icon";
import type { MenuAct } from "./menu";
import { useTargetWhileOpen } from "./target-while-open";

export interface MenuProps {
  label: string;
  children?: ReactNode;
  acts: readonly MenuAct[];
  className?: string;
}

/** Opens by itself: somebody pressed the plain button that stood in its place, whose focus it takes over. */
export default function MenuList(props: MenuProps) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // An act that goes away, or is meant for something else by now, would put another one under the pointer.
  const acts = useTargetWhileOpen(open, props.acts) ?? props.acts;
  useEffect(() => {
    button.current?.focus();
    setOpen(true);
  }, []);
  return (
    <MenuTrigger isOpen={open} onOpenChange={setOpen}>
      <Button ref={button} className={props.className ?? "button"} aria-label={props.children ? undefined : props.label}>
        {props.children ?? <Icon name="more" />}
      </Button>
      <Popover className="popover" placement="bottom end">
        <AriaMenu
          className="menu"
          aria-label={props.label}
          disabledKeys={acts.filter((act) => act.disabled).map((act) => act.id)}
          onAction={(id) => acts.find((act) => act.id === id)?.run()}
        >
          {acts.map((act) => (
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
