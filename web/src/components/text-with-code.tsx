/** Text in which what stands between backticks is code: shown as code, without them. */

export function TextWithCode({ text }: { text: string }) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>; // one that is not closed is a sign like any other
  return <>{parts.map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}
