/** The message of a group, with the parts that differ from case to case as chips. */
export function CauseText({ text }: { text: string }) {
  const parts = text.split(/(<[a-z][a-z -]*>)/);
  return (
    <span className="cause-text">
      {parts.map((part, at) =>
        /^<.*>$/.test(part) ? (
          <span key={at} className="cause-part" title="differs from case to case">
            {part.slice(1, -1)}
          </span>
        ) : (
          part
        ),
      )}
    </span>
  );
}
