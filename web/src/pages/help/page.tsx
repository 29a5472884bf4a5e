/** Help: what the words mean, which keys there are, and where there is more to read. */
import { getRouteApi } from "@tanstack/react-router";
import { KeyList } from "@/app/key-list";
import { CommandLine, serverOption } from "@/components/command-line";
import { TextField } from "@/components/form-fields";
import { Page, Panel } from "@/components/page";
import { TextWithCode } from "@/components/text-with-code";
import { searchHelpWords } from "./help-word-search";
import "@/components/recovery/recovery.css";
import "@/styles/resources.css";
import "./help.css";

const route = getRouteApi("/help");

export default function HelpPage() {
  const { word = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const found = searchHelpWords(word);
  return (
    <Page title="Help" lead="What the words mean, the keys, and where there is more to read.">
      <Panel title="Words">
        <div className="stack">
          <TextField label="Find a word" value={word} onChange={(next) => void navigate({ search: { word: next || undefined }, replace: true })} placeholder="exlet, workflow, Airflow" hint="Also a word of another system, or the system's name." />
          {found.length ? (
            <div className="table-preview" role="region" aria-label="Words" tabIndex={0}>
              <table className="plain-table glossary">
                <thead>
                  <tr>
                    <th>Word</th>
                    <th>Means</th>
                    <th>Elsewhere</th>
                  </tr>
                </thead>
                <tbody>
                  {found.map((each) => (
                    <tr key={each.word}>
                      <th scope="row">{each.word}</th>
                      <td>
                        <TextWithCode text={each.means} />
                      </td>
                      <td className="muted">{each.elsewhere}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <p className="muted">No word here has “{word}” in it.</p>
          )}
        </div>
      </Panel>
      <Panel title="Keys">
        <p className="muted">
          These hold on this page. Many pages have more of their own: <kbd>?</kbd> lists them there.
        </p>
        <KeyList />
      </Panel>
      <Panel title="More to read">
        <div className="stack">
          <p>What can be done here can be done in a terminal, too. These commands list what there is, and ask this server:</p>
          <CommandLine text="mendflow --help" label="Copy the command that lists the commands" />
          <CommandLine text={`mendflow cases ${serverOption()}`} label="Copy the command that lists the cases" />
          <p>
            Programs use the API: <a href="/api/v1/openapi.json">its description (OpenAPI)</a>. The documentation is the folder <code>docs</code> beside the source of mendflow; this server does not have it.
          </p>
        </div>
      </Panel>
    </Page>
  );
}
