/** A command of the terminal, whole as it is typed, with a button that copies it. */
import { CopyButton } from "./copy-button";

export function CommandLine({ text, label }: { text: string; label: string }) {
  return (
    <span className="row">
      <code className="command-text">
        {text}
      </code>
      <CopyButton text={text} label={label} />
    </span>
  );
}

/** The option by which commands find the server of this page. */
export function serverOption(origin = location.origin): string {
  return `--server ${origin}`;
}
