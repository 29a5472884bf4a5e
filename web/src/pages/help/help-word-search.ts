import { HELP_WORDS, type HelpWord } from "./help-words";

/** The words that somebody may mean: those that are called so first, then those that are explained by it. */
export function searchHelpWords(looked: string): readonly HelpWord[] {
  const text = looked.trim().toLowerCase();
  if (!text) return HELP_WORDS;
  const called = HELP_WORDS.filter((each) => each.word.includes(text));
  const told = HELP_WORDS.filter((each) => !called.includes(each) && `${each.means} ${each.elsewhere}`.toLowerCase().includes(text));
  return [...called, ...told];
}
