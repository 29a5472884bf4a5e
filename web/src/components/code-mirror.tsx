/** CodeMirror, in a shadow root: there it adopts its style sheets, which the policy of the page allows, and needs no style
 * element, which it forbids. */
import { autocompletion, closeBrackets, completionKeymap, type Completion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { xml } from "@codemirror/lang-xml";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { linter, lintGutter, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

export interface CodeProblem {
  /** Lines and columns count from 1. */
  line: number;
  column?: number;
  severity: "error" | "warning" | "info";
  message: string;
}

export interface CodeCompletion {
  label: string;
  detail?: string;
  info?: string;
  apply?: string;
}

export interface CodeProps {
  text: string;
  label: string;
  language?: "json" | "yaml" | "python" | "xml" | "cel" | "text";
  onChange?: (text: string) => void;
  /** One line, as for a condition: Enter is `onEnter`. */
  oneLine?: boolean;
  onEnter?: (text: string) => void;
  problems?: readonly CodeProblem[];
  /** What can stand at the end of the text before the cursor. */
  complete?: (before: string) => readonly CodeCompletion[];
  placeholder?: string;
  /** Where the cursor stands at the beginning, if it is the place to write in. */
  cursor?: number;
}

const LANGUAGES: Record<string, () => Extension> = { json, yaml, python, xml, cel: python, text: () => [] };

const look = EditorView.theme({
  "&": { fontSize: "12.5px", color: "var(--text)", backgroundColor: "transparent", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "var(--selected)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "6px", boxShadow: "var(--shadow)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-placeholder": { color: "var(--muted)", fontStyle: "italic" },
  ".cm-searchMatch": { backgroundColor: "var(--mark)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.definitionKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.propertyName, tags.attributeName, tags.tagName], color: "var(--code-name)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
]);

function completions(complete: NonNullable<CodeProps["complete"]>): Extension {
  return autocompletion({
    icons: false,
    override: [
      (context) => {
        const before = context.state.sliceDoc(0, context.pos);
        const word = /[\w.'"-]*$/.exec(before)?.[0] ?? "";
        const options = complete(before).map((each): Completion => ({ ...each }));
        if (!options.length || (!word && !context.explicit && !/[\s(!]$/.test(before) && before !== "")) return null;
        return { from: context.pos - word.length, options };
      },
    ],
  });
}

/** A browser that itself writes over selected text keeps the look of that text by a style attribute, which the policy of
 * the page forbids. So it is told not to, and the editor does it. */
const writeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    const text = event.data;
    if (event.inputType !== "insertText" || !text || event.isComposing || state.readOnly) return false;
    if (state.selection.ranges.every((range) => range.empty)) return false;
    const { from, to } = state.selection.main;
    const write = () => state.update(state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    const handlers = state.facet(EditorView.inputHandler);
    if (!handlers.some((handle) => handle(view, from, to, text, write))) view.dispatch(write());
    event.preventDefault();
    return true;
  },
});

function diagnostics(state: EditorState, problems: readonly CodeProblem[]): Diagnostic[] {
  return problems.map((problem) => {
    const line = state.doc.line(Math.min(Math.max(1, problem.line), state.doc.lines));
    const from = Math.min(line.from + Math.max(0, (problem.column ?? 1) - 1), line.to);
    return { from, to: Math.max(from, line.to), severity: problem.severity, message: problem.message };
  });
}

export default function CodeMirror(props: CodeProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  const lint = useRef(new Compartment());
  useEffect(() => {
    latest.current = props;
  });
  const { language = "text", oneLine = false, label } = props;
  const editable = Boolean(props.onChange);
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const enter = {
      key: "Enter",
      run: (editor: EditorView) => {
        latest.current.onEnter?.(editor.state.doc.toString());
        return true;
      },
    };
    const extensions: Extension[] = [
      look,
      syntaxHighlighting(colours),
      LANGUAGES[language]?.() ?? [],
      EditorView.contentAttributes.of({ "aria-label": label, ...(editable ? {} : { "aria-readonly": "true", tabindex: "0" }) }),
      highlightSelectionMatches(),
      editable ? [writeOver, history(), closeBrackets(), bracketMatching(), completions((before) => latest.current.complete?.(before) ?? [])] : [EditorState.readOnly.of(true), EditorView.editable.of(false)],
      oneLine ? [EditorState.transactionFilter.of((change) => (change.newDoc.lines > 1 ? [] : change))] : [lineNumbers(), foldGutter(), EditorView.lineWrapping],
      props.placeholder ? placeholder(props.placeholder) : [],
      keymap.of([...completionKeymap, ...(oneLine ? [enter] : []), ...defaultKeymap, ...historyKeymap, ...(oneLine ? [] : searchKeymap)]),
      lint.current.of([]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) latest.current.onChange?.(update.state.doc.toString());
      }),
    ];
    const editor = new EditorView({ state: EditorState.create({ doc: latest.current.text, extensions }), parent: root, root });
    view.current = editor;
    if (latest.current.cursor !== undefined) {
      editor.dispatch({ selection: { anchor: Math.min(latest.current.cursor, editor.state.doc.length) } });
      editor.focus();
    }
    return () => {
      editor.destroy();
      view.current = null;
    };
    // The placeholder is of no interest after the start.
  }, [language, oneLine, editable, label]);
  const { text, problems } = props;
  useEffect(() => {
    const editor = view.current;
    if (editor && editor.state.doc.toString() !== text) {
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
    }
  }, [text]);
  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    const extension = problems ? [linter(() => diagnostics(editor.state, problems)), oneLine ? [] : lintGutter()] : [];
    editor.dispatch({ effects: lint.current.reconfigure(extension) });
  }, [problems, oneLine, language, editable, label]);
  return <div className={oneLine ? "code-host one-line" : "code-host"} ref={host} />;
}
