/** Records by names that somebody has chosen. An object of JavaScript has things under names of its own, such as `constructor` and
 * `toString`, and takes what is put under `__proto__` for something else: these two know only what was put into them. */

/** An empty record, in which any name can be set and read. */
export function nullPrototypeRecord<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}

/** What any record has under a name, if that was put into it. */
export function ownProperty<T>(record: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
