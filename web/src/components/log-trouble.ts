/** Which lines of a log tell of trouble. A word of trouble that is a part of another word, as in `QC-failed`, or that is counted to
 * nothing, as in `0 failed` and `no error`, tells of none. */

const TROUBLE = /(?<![\w-])(errors?|exceptions?|fatal|traceback|failed|panic|segfault|killed|cannot|not found|no space left)(?![\w-])/gi;
const NONE_BEFORE = /\b(0|no|zero|without|without any|not)\s+(\w+\s+)?$/i;
const NONE_AFTER = /^\s*[=:]\s*((0|none|false|null|\[\])(?![\w.])|no\s*$)/i;

export function tellsTrouble(line: string): boolean {
  return [...line.matchAll(TROUBLE)].some((found) => !NONE_BEFORE.test(line.slice(0, found.index)) && !NONE_AFTER.test(line.slice(found.index + found[0].length)));
}
