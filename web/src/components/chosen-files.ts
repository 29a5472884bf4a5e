/** The files that somebody has chosen in a field. A browser tells of a file only if it is not in the field yet: it is taken
 * out, so that it can be chosen again, after an edit or where it was refused. */
export function takeChosen(field: HTMLInputElement): File[] {
  const files = [...(field.files ?? [])];
  field.value = "";
  return files;
}
