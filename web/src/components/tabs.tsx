/** Views of one page. Which one is shown is in the address, so each tab is a link. */
import { Link, type LinkProps } from "@tanstack/react-router";
import { useLayoutEffect, useRef, type ReactNode } from "react";
import { number } from "./format";

export interface Tab {
  id: string;
  label: ReactNode;
  count?: number | string;
  /** Where the tab leads: `{to: ".", search: (before) => ({...before, view: "items"})}` */
  link: LinkProps;
}

export function Tabs({ tabs, current, label }: { tabs: readonly Tab[]; current: string; label: string }) {
  const row = useRef<HTMLElement>(null);
  // Where not all have room, the one that is shown is in sight.
  useLayoutEffect(() => {
    const { current: box } = row;
    const tab = box?.querySelector<HTMLElement>("[aria-current]");
    if (!box || !tab || box.scrollWidth <= box.clientWidth) return;
    const left = tab.offsetLeft - box.offsetLeft;
    if (left < box.scrollLeft || left + tab.offsetWidth > box.scrollLeft + box.clientWidth) box.scrollLeft = left - (box.clientWidth - tab.offsetWidth) / 2;
  }, [current]);
  return (
    <nav ref={row} className="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.id} {...tab.link} className="tab" aria-current={tab.id === current ? "page" : undefined} activeProps={{}} activeOptions={{ explicitUndefined: true }}>
          {tab.label}
          {tab.count !== undefined && <span className="tab-count">{typeof tab.count === "number" ? number(tab.count) : tab.count}</span>}
        </Link>
      ))}
    </nav>
  );
}
