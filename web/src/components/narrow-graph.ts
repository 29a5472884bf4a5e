/** What of a graph is seen at first, how high it is, and which movements over it scroll the page; and a graph where it is too long to go
 * from left to right, as on a phone. */
import type { RefObject } from "react";
import { stateOf, type State } from "@/api/states";
import { layOut, type Point } from "./flow-layout";
import type { Placed } from "./graph-layout";

interface Card {
  id: string;
  parentId?: string;
  position: { x: number; y: number };
  width?: number;
  height?: number;
  data: { node: { state: string | null } };
}

/** A step of a graph. */
export const CARD = { width: 196, height: 72 };
const MARGIN = 12;
const LARGEST = 1.1;
/** Whatever is smaller cannot be read. */
const READABLE = 0.7;
const READABLE_ACROSS = 0.9;
/** For the buttons below the graph. */
const BUTTONS = 44;
/** From left to right: so high at least, for the buttons below it, and at most so much of the screen. */
const LOWEST = 140;
const SHARE_OF_SCREEN = 0.75;
const LOOKED_FOR: readonly State[] = ["failed", "person", "repairing", "running"];

/** For the name of what holds others, and what it is. */
const HEAD = 54;

/** From top to bottom, and no wider than it can be read: what stands side by side goes on in the next row. A node in another has
 * its place there. Of each edge, the points that it goes through. */
export function placeNarrow<Node extends { id: string; name: string; parent: string | null }>(nodes: readonly Node[], edges: readonly { source: string; target: string }[], size: { width: number; height: number }, width: number): { at: Map<string, Placed>; routes: Point[][] } {
  const { boxes, routes } = layOut(nodes, edges, "down", { sizeOf: () => size, head: HEAD, widest: (width - 2 * MARGIN) / READABLE });
  const at = new Map<string, Placed>();
  for (const { id, parent } of nodes) {
    const box = boxes.get(id);
    const outer = parent === null ? undefined : boxes.get(parent);
    if (box) at.set(id, outer ? { ...box, x: box.x - outer.x, y: box.y - outer.y } : box);
  }
  return { at, routes };
}

/** What the navigation and the margins of a page take. */
const AROUND_PX = 226;

/** The room that a graph has on this screen, whatever stands beside it. */
export function roomFor(isTablet: boolean): number {
  return innerWidth - (isTablet ? 0 : AROUND_PX);
}

/** Whether it cannot be read from left to right, where there is so much room. */
export function isTooLong(nodes: readonly { id: string; name: string; parent?: string | null }[], edges: readonly { source: string; target: string }[], width: number): boolean {
  return layOut(nodes, edges, "right", { sizeOf: () => CARD, head: HEAD }).width * READABLE_ACROSS > width - 2 * MARGIN;
}

interface FirstView {
  view: { x: number; y: number; zoom: number };
  /** So high is the graph then: the page scrolls over all of it. */
  height: number;
}

/** The graph from its first node on, in its whole width if it can be read then. Else it begins with the node that is looked at, or
 * what failed, or the first. What goes from left to right and is very high is moved in its frame. */
export function firstView(cards: readonly Card[], width: number, selected: string | undefined, down: boolean): FirstView {
  const outer = cards.filter((card) => !card.parentId);
  const left = Math.min(...outer.map((card) => card.position.x));
  const top = Math.min(...outer.map((card) => card.position.y));
  const wide = Math.max(...outer.map((card) => card.position.x + (card.width ?? 0))) - left;
  const high = Math.max(...outer.map((card) => card.position.y + (card.height ?? 0))) - top;
  if (!outer.length || !wide || !high) return { view: { x: 0, y: 0, zoom: 1 }, height: 0 };
  const highest = down ? Infinity : Math.max(LOWEST, innerHeight * SHARE_OF_SCREEN);
  // From left to right it can be read in the room that it has by itself; beside a pane all of it stays in sight, and is smaller.
  const whole = (width - 2 * MARGIN) / wide;
  const zoom = Math.max(down ? READABLE : Math.min(READABLE_ACROSS, whole), Math.min(LARGEST, whole, highest / high));
  const first = cards.find((card) => card.id === selected) ?? LOOKED_FOR.flatMap((state) => cards.filter(({ data }) => data.node.state && stateOf(data.node.state) === state))[0];
  const at = first && placeOf(first, cards);
  return {
    view: { zoom, x: startOf(width, left, wide, zoom, at && { from: at.x, size: first.width ?? 0 }), y: MARGIN - top * zoom },
    height: Math.min(highest, Math.max(Math.ceil(high * zoom) + 2 * MARGIN + BUTTONS, down ? 0 : LOWEST)),
  };
}

function placeOf(card: Card, cards: readonly Card[]): { x: number; y: number } {
  const outer = card.parentId ? cards.find((each) => each.id === card.parentId) : undefined;
  const base = outer ? placeOf(outer, cards) : { x: 0, y: 0 };
  return { x: base.x + card.position.x, y: base.y + card.position.y };
}

/** Where a graph begins from the left: in the middle if there is room, else so that `shown` is in the middle and no room
 * is left over at either end. */
function startOf(room: number, from: number, size: number, zoom: number, shown: { from: number; size: number } | undefined): number {
  if (size * zoom <= room) return (room - size * zoom) / 2 - from * zoom;
  const begin = MARGIN - from * zoom;
  if (!shown) return begin;
  const end = room - MARGIN - (from + size) * zoom;
  return Math.max(end, Math.min(begin, room / 2 - (shown.from + shown.size / 2) * zoom));
}

/** So far a hand moves that only clicks. */
const TREMBLE_PX = 6;

interface View {
  x: number;
  y: number;
  zoom: number;
}

/** Whether somebody has moved the graph, and not only clicked in it. */
export function isMoved(from: View, to: View): boolean {
  return from.zoom !== to.zoom || Math.hypot(to.x - from.x, to.y - from.y) > TREMBLE_PX;
}

/** A finger that moves up or down over the graph scrolls the page, as it does elsewhere; one that moves sideways, or two
 * fingers, move the graph. Also keeps whether the graph was moved by its buttons; the one that shows all of it takes that back. */
export function letPageScroll(board: HTMLElement, moved: RefObject<boolean>): () => void {
  let began: { x: number; y: number } | null = null;
  let whose: "page" | "graph" | "" = "";
  const down = ({ touches }: TouchEvent) => {
    const [first] = touches;
    began = first && touches.length === 1 ? { x: first.clientX, y: first.clientY } : null;
    whose = began ? "" : "graph";
  };
  const move = (event: TouchEvent) => {
    const [first] = event.touches;
    if (!whose && began && first) {
      const [x, y] = [Math.abs(first.clientX - began.x), Math.abs(first.clientY - began.y)];
      if (x + y > 0) whose = y > x ? "page" : "graph";
    }
    if (whose !== "graph") event.stopPropagation();
  };
  const pressed = ({ target }: Event) => {
    const place = target as HTMLElement;
    if (place.closest(".react-flow__controls-fitview")) moved.current = false;
    else if (place.closest(".react-flow__controls, .react-flow__minimap")) moved.current = true;
  };
  board.addEventListener("touchstart", down, { capture: true, passive: true });
  board.addEventListener("touchmove", move, { capture: true, passive: true });
  board.addEventListener("pointerdown", pressed);
  return () => {
    board.removeEventListener("touchstart", down, { capture: true });
    board.removeEventListener("touchmove", move, { capture: true });
    board.removeEventListener("pointerdown", pressed);
  };
}
