/** One event stream a browser, however many tabs there are: browsers open only six connections to a server.
 *
 * The tab that holds the lock reads the stream and tells the others. When it is closed the lock goes to another tab, which
 * goes on after the last event that any of them saw. Whatever arrives is handed on once a frame, so a case with many
 * thousand items costs the page no more than a quiet one. */
import type { Schemas } from "./client";

export type ChangeEvent = Schemas["ChangeEvent"];
export type FeedStatus = "connecting" | "live" | "away" | "paused";

/** `missed`: so much happened in a gap that what the page holds must be read anew. */
export interface Changes {
  events: ChangeEvent[];
  missed: boolean;
}

type Listener = (changes: Changes) => void;
type Message = { kind: "changes"; changes: Changes } | { kind: "status"; status: FeedStatus } | { kind: "hello" };

const NAME = "mendflow-events";
const KINDS = ["case", "item", "user-task", "alert", "message", "repair"] as const;
const AGAIN_MS = [500, 1000, 2000, 5000];
const HELD_MAX = 20_000;

export class EventFeed {
  private readonly listeners = new Set<Listener>();
  private readonly statusListeners = new Set<() => void>();
  private readonly channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(NAME);
  private source: EventSource | null = null;
  private reading: FeedStatus = "connecting";
  private collected: ChangeEvent[] = [];
  private missed = false;
  private scheduled = false;
  private tries = 0;
  private last = 0;
  private held: Changes = { events: [], missed: false };
  private isPaused = false;
  private stopped = false;
  private release: (() => void) | null = null;

  constructor(private readonly address: string) {}

  start(): void {
    this.channel?.addEventListener("message", (message: MessageEvent<Message>) => this.hear(message.data));
    this.say({ kind: "hello" });
    const locks = typeof navigator === "undefined" ? undefined : navigator.locks;
    if (!locks) {
      this.open();
      return;
    }
    void locks.request(NAME, () => {
      if (this.stopped) return Promise.resolve();
      this.open();
      return new Promise<void>((release) => (this.release = release));
    });
  }

  stop(): void {
    this.stopped = true;
    this.source?.close();
    this.source = null;
    this.release?.();
    this.channel?.close();
  }

  get status(): FeedStatus {
    return this.isPaused ? "paused" : this.reading;
  }

  /** How many changes a pause holds back. */
  get waiting(): number {
    return this.held.events.length;
  }

  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  watchStatus = (listener: () => void): (() => void) => {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  };

  /** Hold back what happens, so that nothing moves while somebody looks; then tell it at once. */
  pause(paused: boolean): void {
    this.isPaused = paused;
    if (!paused) {
      const held = this.held;
      this.held = { events: [], missed: false };
      if (held.events.length || held.missed) this.deliver(held);
    }
    this.tellStatus();
  }

  private open(): void {
    if (this.stopped) return;
    const address = this.last ? `${this.address}?after=${this.last}` : this.address;
    const source = new EventSource(address);
    this.source = source;
    source.onopen = () => {
      if (this.tries > 0) this.missed = this.missed || this.last === 0;
      this.tries = 0;
      this.become("live");
      this.schedule();
    };
    for (const kind of KINDS) source.addEventListener(kind, (event: MessageEvent<string>) => this.take(event.data));
    source.addEventListener("reset", () => {
      this.missed = true;
      this.schedule();
    });
    source.onerror = () => this.cut(source);
  }

  /** The browser takes a cut stream up by itself, unless the server answered with an error. */
  private cut(source: EventSource): void {
    this.tries += 1;
    this.become("away");
    if (source.readyState !== EventSource.CLOSED) return;
    source.close();
    setTimeout(() => this.open(), AGAIN_MS[Math.min(this.tries - 1, AGAIN_MS.length - 1)]);
  }

  private take(text: string): void {
    const event = JSON.parse(text) as ChangeEvent;
    this.last = Math.max(this.last, event.serial);
    this.collected.push(event);
    this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const flush = () => {
      this.scheduled = false;
      const changes = { events: this.collected, missed: this.missed };
      this.collected = [];
      this.missed = false;
      if (!changes.events.length && !changes.missed) return;
      this.say({ kind: "changes", changes });
      this.receive(changes);
    };
    if (document.hidden) setTimeout(flush, 250);
    else requestAnimationFrame(flush);
  }

  private hear(message: Message): void {
    if (message.kind === "hello") {
      if (this.source) this.say({ kind: "status", status: this.reading });
    } else if (message.kind === "status") {
      if (!this.source) this.become(message.status);
    } else if (!this.source) {
      for (const event of message.changes.events) this.last = Math.max(this.last, event.serial);
      this.receive(message.changes);
    }
  }

  private receive(changes: Changes): void {
    if (!this.isPaused) {
      this.deliver(changes);
      return;
    }
    const events = [...this.held.events, ...changes.events];
    const missed = this.held.missed || changes.missed || events.length > HELD_MAX;
    this.held = { events: missed ? [] : events, missed };
    this.tellStatus();
  }

  private deliver(changes: Changes): void {
    for (const listener of this.listeners) listener(changes);
  }

  private become(status: FeedStatus): void {
    if (status === this.reading) return;
    this.reading = status;
    if (this.source) this.say({ kind: "status", status });
    this.tellStatus();
  }

  private tellStatus(): void {
    for (const listener of this.statusListeners) listener();
  }

  private say(message: Message): void {
    this.channel?.postMessage(message);
  }
}

export const feed = new EventFeed("/api/v1/events");
