// Backups: when the last one was made, where they go, a new one, and a database brought back beside the live one.

import { useState } from "preact/hooks";
import { ask, command, type Json } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { bytes, duration, moment, number } from "../../shared/i18n.ts";
import { hashOf } from "../../shared/route.ts";
import { Dialog, Field, Form, Loaded, say } from "../../shared/ui.tsx";
import { statisticOf, type Stats, type Task } from "../health.ts";
import { t } from "../texts.ts";

type Seen = { stats: Stats; tasks: { running: Task[]; ended: Task[] }; targets: string[] };

async function look(): Promise<Seen> {
  const [stats, tasks, setting] = await Promise.all([
    ask<Stats>("GET", "_stats"),
    command<Seen["tasks"]>("show tasks"),
    command<{ value: Json }>("show configuration backup.targets"),
  ]);
  const { value } = setting.data;
  return { stats, tasks: tasks.data, targets: Array.isArray(value) ? value.map(String) : [] };
}

const isBackup = ({ kind }: Task) => /backup|restor/i.test(kind);

export function Page() {
  const seen = useResource("backups", look, 3000);
  const [open, setOpen] = useState<"" | "backup" | "restore">("");
  return (
    <>
      <div class="spread">
        <h1>{t("backups")}</h1>
        <div class="buttons">
          <button type="button" onClick={() => setOpen("restore")}>{t("restoreDatabase")}</button>
          <button type="button" class="primary" onClick={() => setOpen("backup")}>{t("backUpNow")}</button>
        </div>
      </div>
      <Loaded of={seen}>{(now) => (
        <>
          <Tiles stats={now.stats} />
          <section class="card">
            <h2>{t("backupTargets")}</h2>
            {now.targets.length === 0
              ? <p class="note warn">{t("noTargets")} <a href={hashOf(["configuration"], { key: "backup.targets" })}>backup.targets</a></p>
              : <ul>{now.targets.map((target) => <li class="mono" dir="auto">{target}</li>)}</ul>}
          </section>
          <Tasks running={now.tasks.running.filter(isBackup)} ended={now.tasks.ended.filter(isBackup)} />
        </>
      )}</Loaded>
      {open === "backup" && <BackUp targets={seen.data.value?.targets ?? []} close={() => setOpen("")} begun={() => void seen.reload()} />}
      {open === "restore" && <Restore targets={seen.data.value?.targets ?? []} close={() => setOpen("")} begun={() => void seen.reload()} />}
    </>
  );
}

function Tiles({ stats }: { stats: Stats }) {
  const value = (name: string) => statisticOf(stats, name) ?? 0;
  const last = value("Backup.LastTime");
  return (
    <div class="cards">
      <div class="card tile"><span class="quiet">{t("lastBackupTitle")}</span><b>{last > 0 ? moment(last * 1000) : "–"}</b><span class="quiet">{last > 0 ? t("ago", { time: duration(Date.now() / 1000 - last) }) : t("noBackup")}</span></div>
      <div class="card tile"><span class="quiet">{t("made")}</span><b>{number(value("Backup.Made"))}</b><span class="quiet">{bytes(value("Backup.Bytes"))}</span></div>
      <a class="card tile" href={hashOf(["log"], { level: "warn" })}><span class="quiet">{t("failedBackups")}</span><b>{number(value("Backup.Failed"))}</b><span class="quiet">{t("sinceStart")}</span></a>
    </div>
  );
}

function Tasks({ running, ended }: { running: Task[]; ended: Task[] }) {
  return (
    <section class="card">
      <h2>{t("backupTasks")}</h2>
      {running.length + ended.length === 0 ? <p class="quiet">{t("noTasks")}</p> : (
        <div class="scrolls" tabIndex={0} role="region" aria-label={t("backupTasks")}><table>
          <thead><tr><th scope="col">{t("task")}</th><th scope="col">{t("state")}</th><th scope="col" class="numeric">{t("took")}</th><th scope="col">{t("since")}</th></tr></thead>
          <tbody>{[...running, ...ended].map((task) => (
            <tr><td>{task.task} {task.kind} <span dir="auto">{task.database}</span></td>
              <td><span class={`pill ${task.state === "failed" ? "bad" : task.state === "finished" ? "good" : ""}`}>{task.state}</span>
                {task.percent !== null && task.state !== "finished" && <progress max={100} value={task.percent} aria-label={task.kind} />} <span dir="auto">{task.reason}</span></td>
              <td class="numeric">{duration(task.updated_on - task.started_on)}</td><td>{moment(task.started_on * 1000)}</td></tr>
          ))}</tbody>
        </table></div>
      )}
      <p class="quiet">{t("verifyHint")}</p>
    </section>
  );
}

function Targets({ targets, value, set }: { targets: string[]; value: string; set: (value: string) => void }) {
  return (
    <div class="field"><label for="target">{t("backupPlace")}</label>
      <select id="target" data-first value={value} onChange={(event) => set(event.currentTarget.value)}>{targets.map((target) => <option value={target}>{target}</option>)}</select></div>
  );
}

type DialogProps = { targets: string[]; close: () => void; begun: () => void };

function BackUp({ targets, close, begun }: DialogProps) {
  const [target, setTarget] = useState(targets[0] ?? "");
  const [rate, setRate] = useState("");
  const send = async () => {
    await command(["load backup", target, rate.trim() && `-r ${rate.trim()}`].filter(Boolean).join(" "));
    close();
    say(t("backupBegan"));
    begun();
  };
  return (
    <Dialog title={t("backUpNow")} close={close}>
      {targets.length === 0 ? <p>{t("noTargets")}</p> : (
        <Form label={t("backUpNow")} send={send}>
          <Targets targets={targets} value={target} set={setTarget} />
          <Field label={t("rateLimit")} hint={t("rateLimitHint")} placeholder="50MB" pattern="[0-9]+ *[KMG]?B?" value={rate} onInput={(event) => setRate(event.currentTarget.value)} />
        </Form>
      )}
    </Dialog>
  );
}

function Restore({ targets, close, begun }: DialogProps) {
  const [fields, setFields] = useState({ target: targets[0] ?? "", database: "", name: "", moment: "" });
  const field = (name: keyof typeof fields) => ({ value: fields[name], onInput: (event: { currentTarget: HTMLInputElement }) => setFields({ ...fields, [name]: event.currentTarget.value }) });
  const send = async () => {
    const at = fields.moment ? `-t ${new Date(fields.moment).toISOString().replace(/\.\d+Z$/, "Z")}` : "";
    await command(["load restore", fields.target, fields.database.trim(), fields.name.trim(), at].filter(Boolean).join(" "));
    close();
    say(t("restoreBegan", { name: fields.name }));
    begun();
  };
  return (
    <Dialog title={t("restoreDatabase")} close={close}>
      {targets.length === 0 ? <p>{t("noTargets")}</p> : (
        <Form label={t("restore")} send={send}>
          <p class="quiet">{t("restoreHint")}</p><br />
          <Targets targets={targets} value={fields.target} set={(target) => setFields({ ...fields, target })} />
          <Field label={t("databaseName")} required pattern="\S+" autocapitalize="none" spellcheck={false} {...field("database")} />
          <Field label={t("restoreName")} required pattern="\S+" autocapitalize="none" spellcheck={false} {...field("name")} />
          <Field label={t("restoreMoment")} hint={t("restoreMomentHint")} type="datetime-local" step={1} {...field("moment")} />
        </Form>
      )}
    </Dialog>
  );
}
