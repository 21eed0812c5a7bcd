// The configuration: every key with its value and where it comes from, all about one, and a change that shows what it writes.

import { useState } from "preact/hooks";
import { command, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { Grid, type Column } from "../../shared/grid.tsx";
import { change, place } from "../../shared/route.ts";
import { Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { writtenValue, writtenValues } from "../settings.ts";
import { t } from "../texts.ts";

type Setting = { key: string; value: Json; source: string };
type About = {
  key: string; help: string; takes: string; default: Json; value: Json; source: string; environment: string; domino: string | null;
  changes_while_running: boolean; set_in_file_alone: boolean;
};

const shown = (value: Json) => (typeof value === "string" ? value : JSON.stringify(value));

const COLUMNS: Column<Setting>[] = [
  { title: t("setting"), width: "minmax(9rem, 2fr)", show: ({ key }) => <span class="mono">{key}</span> },
  { title: t("value"), width: "minmax(6rem, 2fr)", show: ({ value }) => <span class="mono" dir="auto">{shown(value)}</span> },
  { title: t("source"), width: "minmax(6rem, 1fr)", wide: true, show: ({ source }) => <span class={source === "default" ? "quiet" : "pill"}>{source}</span> },
];

export function Page() {
  const settings = useResource("settings", async () => {
    const { data, text } = await command<{ [key: string]: { value: Json; source: string } }>("show configuration");
    const written = writtenValues(text);
    return Object.entries(data).map(([key, { value, source }]): Setting => ({ key, value: written.get(key) ?? value, source }));
  });
  const { key, filter = "", changed } = place.value.parameters;
  return (
    <>
      <h1>{t("configuration")}</h1>
      <div class="filters">
        <input type="search" aria-label={t("filterSettings")} placeholder={t("filterSettings")} value={filter} onInput={(event) => change({ filter: event.currentTarget.value })} />
        <label class="check"><input type="checkbox" checked={Boolean(changed)} onChange={(event) => change({ changed: event.currentTarget.checked ? "1" : undefined })} />{t("changedOnly")}</label>
      </div>
      <div class={`fills split ${key ? "has-detail" : "single"}`}>
        <Loaded of={settings}>{(all) => {
          const found = all.filter((setting) => (!changed || setting.source !== "default") && `${setting.key} ${shown(setting.value)}`.toLowerCase().includes(filter.toLowerCase()));
          return <Grid label={t("configuration")} columns={COLUMNS} count={found.length} source={`${filter} ${changed}`} version={JSON.stringify(found)} pageSize={1000} fetchPage={async (start, limit) => found.slice(start, start + limit)}
            open={(setting) => change({ key: setting.key })} />;
        }}</Loaded>
        {key && <Detail key={key} name={key} changed={() => void settings.reload()} />}
      </div>
    </>
  );
}

function Detail({ name, changed }: { name: string; changed: () => void }) {
  const about = useResource(`setting ${name}`, async () => {
    const { data, text } = await command<About>(`show configuration ${name}`);
    return { ...data, value: writtenValue(text) ?? data.value };
  });
  return (
    <section class="card docked" aria-label={name}>
      <div class="spread"><h2 class="mono">{name}</h2><button type="button" class="plain" onClick={() => change({ key: undefined })}>✕ {t("backToList")}</button></div>
      <Loaded of={about}>{(told) => (
        <>
          <p>{told.help}</p>
          <table><tbody>
            {([[t("value"), shown(told.value)], [t("source"), told.source], [t("takes"), told.takes], [t("byDefault"), shown(told.default)], [t("environment"), told.environment], [t("domino"), told.domino ?? ""]] as const)
              .filter(([, value]) => value !== "").map(([what, value]) => <tr><th scope="row">{what}</th><td class="mono" dir="auto">{value}</td></tr>)}
          </tbody></table>
          <Change about={told} changed={() => { changed(); void about.reload(); }} />
        </>
      )}</Loaded>
    </section>
  );
}

function Change({ about, changed }: { about: About; changed: () => void }) {
  const [value, setValue] = useState(shown(about.value));
  if (about.set_in_file_alone) return <p class="note">{t("fileAlone")}</p>;
  const isOther = value !== shown(about.value);
  return (
    <Form label={t("change")} disabled={!isOther} send={async () => {
      await command(`set configuration ${about.key}=${value}`);
      say(t("configurationChanged", { key: about.key }));
      changed();
    }}>
      <Field label={t("newValue")} hint={about.changes_while_running ? t("atOnce") : t("fromStart")} autocomplete="off" spellcheck={false} value={value} onInput={(event) => setValue(event.currentTarget.value)} />
      {isOther && (
        <div role="status"><p class="quiet">{t("willWrite")}</p>
          <pre class="note"><del>{`- ${about.key} = ${shown(about.value)}`}</del>{"\n"}<ins>{`+ ${about.key} = ${value}`}</ins></pre></div>
      )}
    </Form>
  );
}
