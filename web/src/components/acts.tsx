/** Acts of a page: done at once, or after a question that says what will happen; then what changed is read again. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useState, type ReactNode } from "react";
import { ConfirmDialog } from "./dialog";
import { toast, toastError } from "./toasts";
import { Glossed } from "./word";

/** Read again what begins with one of these words: `await refresh("schedules", "cases")`. */
export function useRefresh(): (...keys: string[]) => Promise<void> {
  const client = useQueryClient();
  return useCallback(
    async (...keys: string[]) => {
      await Promise.all(keys.map((key) => client.invalidateQueries({ queryKey: [key] })));
    },
    [client],
  );
}

/** Do it now; say what was done, or what the API said. */
export function useAct(...keys: string[]): (act: () => Promise<unknown>, done: ReactNode) => Promise<boolean> {
  const refresh = useRefresh();
  return async (act, done) => {
    try {
      await act();
      toast("good", done);
      return true;
    } catch (refused) {
      toastError(refused);
      return false;
    } finally {
      await refresh(...keys);
    }
  };
}

export interface Question {
  title: string;
  /** What it will do, in sentences. */
  will: ReactNode;
  act: string;
  danger?: boolean;
  onAct: () => Promise<unknown>;
  /** What is said afterwards; it may tell what the act answered. */
  done: ReactNode | ((answer: unknown) => ReactNode);
}

/** `const [question, ask] = useQuestion("sites")`: put `question` somewhere, and ask before an act. */
export function useQuestion(...keys: string[]): [ReactNode, (question: Question) => void] {
  const refresh = useRefresh();
  const [open, setOpen] = useState(false);
  const [asked, setAsked] = useState<Question | null>(null);
  const element = asked && (
    <ConfirmDialog
      title={asked.title}
      will={typeof asked.will === "string" ? <p><Glossed text={asked.will} /></p> : asked.will}
      act={asked.act}
      danger={asked.danger}
      open={open}
      onClose={() => setOpen(false)}
      onAct={async () => {
        const answer = await asked.onAct();
        toast("good", typeof asked.done === "function" ? asked.done(answer) : asked.done);
        await refresh(...keys);
      }}
    />
  );
  const ask = useCallback((question: Question) => {
    setAsked(question);
    setOpen(true);
  }, []);
  return [element, ask];
}
