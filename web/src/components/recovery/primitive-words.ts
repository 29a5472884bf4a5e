/** What each primitive does, in the words in which people look for it, and in the order in which they need it. One that is not here comes
 * last, in the words of the server. */
export const PRIMITIVE_WORDS: Readonly<Record<string, string>> = {
  "re-submit": "Run the job again, as it is or with more memory or time, other variables (env), another pilot.",
  "retry-later": "Run the job again later, with the others that wait.",
  run: "A shell script or program of your own, run as a job before the next step: make what is missing, then run again.",
  restart: "Run the item again, with the data that it began with.",
  write: "Change data of the case or the item.",
  "force-complete": "Skip it: it counts as completed, and the next step runs.",
  unwind: "Compensate: undo what the case has completed.",
  notify: "Tell a person.",
  "force-fail": "Give it up: it fails, and the flow handles that.",
  remove: "Cancel it: nothing that needs it runs.",
  wait: "Wait a while before the next step.",
  "re-stage": "Fetch the files of the job again.",
  suspend: "Stop it until it is continued.",
  continue: "Let go on what this exlet has suspended.",
  "re-poll": "Ask again how the job stands.",
  "re-register": "Listen again for the end of the job.",
};
