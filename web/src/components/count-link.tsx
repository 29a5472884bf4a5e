/** A number that leads to exactly those rows that it counts. */
import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { number } from "./format";

export function CountLink(props: { count: number; what: string; link: LinkProps; children?: ReactNode; className?: string }) {
  const said = `${number(props.count)} ${props.what}`;
  if (!props.count) {
    return (
      <span className={`count zero ${props.className ?? ""}`} title={said}>
        {props.children ?? 0}
      </span>
    );
  }
  return (
    <Link {...props.link} className={`count ${props.className ?? ""}`} aria-label={said} title={said}>
      {props.children ?? number(props.count)}
    </Link>
  );
}
