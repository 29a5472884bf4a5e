/** A message of a group of failures: the parts that differ each time, `<n>` or `<hex>`, are chips. */
export function Variable({ text }: { text: string }) {
  return (
    <>
      {text.split(/(<[a-z]+>)/).map((part, at) =>
        /^<[a-z]+>$/.test(part) ? (
          <span key={at} className="variable" title="differs each time">
            {part.slice(1, -1)}
          </span>
        ) : (
          part
        ),
      )}
    </>
  );
}
