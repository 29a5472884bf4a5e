/** The form of a task: a field for each output that it asks for, and how it ends. */
import { useId, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { useRefresh } from "@/components/acts";
import { ConfirmDialog } from "@/components/dialog";
import { Field, NeededMark } from "@/components/field";
import { useInvalidFieldFocus } from "@/components/invalid-field-focus";
import { AreaField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { nullPrototypeRecord, ownProperty } from "@/components/own-properties";
import { Panel } from "@/components/page";
import { ErrorState } from "@/components/states-of-page";
import { toast } from "@/components/toasts";
import { isApproval, isYesOrNo, readText, withoutYesOrNo } from "@/components/typed-values";
import { takenAs } from "@/components/value-field";
import { apiPlace } from "../worklist/queries";

type Task = Schemas["UserTaskView"];

function YesOrNo(props: { name: string; question: string; value: string; onChange: (value: string) => void; problem: string | null }) {
  const id = useId();
  return (
    <fieldset className="yes-no" role="radiogroup" aria-required aria-describedby={props.problem ? id : undefined}>
      <legend>{props.name}<NeededMark /></legend>
      {props.question && <p className="field-hint">{props.question}</p>}
      <div className="row">
        {(["yes", "no"] as const).map((word) => (
          <label key={word} className="yes-no-choice" data-chosen={props.value === word || undefined}>
            <input type="radio" name={props.name} aria-invalid={props.problem ? true : undefined} checked={props.value === word} onChange={() => props.onChange(word)} />
            {word === "yes" ? "Yes" : "No"}
          </label>
        ))}
      </div>
      {props.problem && <p className="field-problem" id={id}>{props.problem}</p>}
    </fieldset>
  );
}

function AnswerField(props: { name: string; description: string; value: string; onChange: (value: string) => void; problem: string | null }) {
  const { name, description, value, onChange, problem } = props;
  if (isYesOrNo(description)) return <YesOrNo name={name} question={withoutYesOrNo(description)} value={value} onChange={onChange} problem={problem} />;
  return (
    <Field label={name} hint={[description, takenAs(value)].filter(Boolean).join(" ")} problem={problem} required>
      {(ids) => <textarea {...ids} rows={value.length > 60 || value.includes("\n") ? 4 : 1} value={value} onChange={(event) => onChange(event.target.value)} />}
    </Field>
  );
}

/** The outputs of the task by what was answered, as the command line reads it, and what is wrong with each. */
function readAnswers(fields: [string, string][], answerTo: (name: string) => string) {
  const outputs = nullPrototypeRecord<unknown>();
  const problems = nullPrototypeRecord<string>();
  for (const [name, description] of fields) {
    const answer = answerTo(name);
    const read = answer.trim() === "" ? { problem: "An answer is needed" } : readText(isYesOrNo(description) ? { type: "boolean" } : {}, answer);
    if ("problem" in read) problems[name] = read.problem;
    else outputs[name] = read.value;
  }
  return { outputs, problems };
}

/** Says why by the comment of the form; where there is none, it asks. */
function RejectDialog({ task, comment, setComment, open, onClose }: { task: Task; comment: string; setComment: (comment: string) => void; open: boolean; onClose: () => void }) {
  const refresh = useRefresh();
  const [asks, setAsks] = useState<boolean | null>(null);
  if (open && asks === null) setAsks(!comment.trim());
  if (!open && asks !== null) setAsks(null);
  const act = isApproval(task) && Object.keys(task.fields).length ? "Give up" : "Reject"; // there, Reject is the answer No
  return (
    <ConfirmDialog
      title={`${act} ${task.title || task.item}`}
      act={act}
      danger
      open={open}
      onClose={onClose}
      disabled={!comment.trim()}
      will={
        <>
          <p>The step fails with the fault “rejected”. If the flow has no handler for that, and no rule mends it, the case fails.</p>
          {asks ? (
            <AreaField label="Why" required value={comment} onChange={setComment} hint="It is kept with the task, and shown to whoever looks at the case." />
          ) : (
            <p>Your comment says why: “{comment.trim()}”. It is kept with the task, and shown to whoever looks at the case.</p>
          )}
        </>
      }
      onAct={async () => {
        await ask(api.POST("/api/v1/worklist/{case}/{serial}/reject", { params: { path: apiPlace(task.id) }, body: { comment } }));
        toast("good", "Rejected");
        await refresh("worklist");
      }}
    />
  );
}

export function TaskForm({ task, warning }: { task: Task; warning: string }) {
  const refresh = useRefresh();
  const mayReject = useMay("reject");
  const [answers, setAnswers] = useState<Record<string, string>>({});
  const [comment, setComment] = useState("");
  const [tries, setTries] = useState(0);
  const tried = tries > 0;
  useInvalidFieldFocus(tries);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const [rejecting, setRejecting] = useState(false);
  const fields = Object.entries(task.fields);
  const yesOrNo = fields.filter(([, description]) => isYesOrNo(description)).map(([name]) => name);
  // A task that asks for a comment itself has one field for it, not two.
  const asksForComment = !isApproval(task) && fields.some(([name]) => /^comments?$/i.test(name));
  const answerTo = (name: string) => ownProperty(answers, name) ?? "";
  const { outputs: answered, problems } = readAnswers(fields, answerTo);
  const approval = isApproval(task);
  const asked = approval ? yesOrNo[0] : undefined; // the one answer, which the buttons give
  const complete = () => {
    setTries(tries + 1);
    setRefused(null);
    if (!Object.keys(problems).length) void send(answered);
  };
  const decide = (yes: boolean) => void send(asked === undefined ? {} : { [asked]: yes });
  const send = async (outputs: Record<string, unknown>) => {
    setBusy(true);
    setRefused(null);
    try {
      await ask(api.POST("/api/v1/worklist/{case}/{serial}/complete", { params: { path: apiPlace(task.id) }, body: { outputs, comment } }));
      toast("good", "Done: the case goes on");
      await refresh("worklist");
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title="Your answer">
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (approval) decide(true);
          else complete();
        }}
      >
        {warning && (
          <p className="notice">
            <Icon name="person" size={14} /> {warning}
          </p>
        )}
        {!fields.length && !approval && <p className="muted">It asks for nothing but a decision: complete it, or reject it.</p>}
        {asked !== undefined && <p>{withoutYesOrNo(ownProperty(task.fields, asked) ?? "") || asked}</p>}
        {!approval && fields.map(([name, description]) => (
          <AnswerField
            key={name}
            name={name}
            description={description}
            value={answerTo(name)}
            problem={tried ? (ownProperty(problems, name) ?? null) : null}
            onChange={(value) => setAnswers((before) => ({ ...before, [name]: value }))}
          />
        ))}
        {!asksForComment && <AreaField label="Comment" rows={2} value={comment} onChange={setComment} hint="Kept with the task." />}
        {refused !== null && <ErrorState error={refused} compact />}
        <dl className="task-means">
          <div>
            <dt>{approval ? "Approve" : "Complete"}</dt>
            <dd>{asked !== undefined ? `answers Yes for ${asked}, and the flow goes on.` : approval ? "says yes, and the case goes on." : fields.length ? `sends your answers. The flow goes on with ${fields.length === 1 ? "this answer, whatever it is" : "these answers, whatever they are"}${yesOrNo.length ? `; what it does with a No for ${yesOrNo.join(", ")} is up to the flow` : ""}.` : "says that it is done, and the case goes on."}</dd>
          </div>
          {asked !== undefined && (
            <div>
              <dt>Reject</dt>
              <dd>answers No for {asked}, and the flow goes on; what it does then is up to it.</dd>
            </div>
          )}
          {mayReject && (
            <div>
              <dt>{asked !== undefined ? "Give it up" : "Reject"}</dt>
              <dd>{asked !== undefined ? "answers nothing" : approval ? "says no" : fields.length ? "answers nothing" : "says that it is not done"}: the task cannot or must not be done. Its step fails, and without a handler or a rule for that, so does the case.</dd>
            </div>
          )}
        </dl>
        <div className="row wrap task-acts">
          <button type="submit" className="button primary" disabled={busy || warning !== ""}>
            <Icon name="check" size={14} /> {approval ? "Approve" : "Complete"}
          </button>
          {asked !== undefined && (
            <button type="button" className="button danger" disabled={busy || warning !== ""} onClick={() => decide(false)}>
              Reject
            </button>
          )}
          {mayReject && (
            <button type="button" className={asked !== undefined ? "button quiet" : "button danger"} disabled={busy || warning !== ""} onClick={() => setRejecting(true)}>
              {asked !== undefined ? "Give it up …" : "Reject …"}
            </button>
          )}
        </div>
      </form>
      <RejectDialog task={task} comment={comment} setComment={setComment} open={rejecting} onClose={() => setRejecting(false)} />
    </Panel>
  );
}
