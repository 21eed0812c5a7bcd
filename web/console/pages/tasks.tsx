// Long jobs with their progress, and the server's console.

import { useEffect, useRef, useState } from "preact/hooks";
import { command } from "../../shared/api.ts";
import { useResource } from "../../shared/data.ts";
import { duration, moment, number } from "../../shared/i18n.ts";
import { change, place } from "../../shared/route.ts";
import { attempt, Loaded, say } from "../../shared/ui.tsx";
import type { Task } from "../health.ts";
import { t } from "../texts.ts";

type Tasks = { running: Task[]; ended: Task[] };

export function Page() {
  const tasks = useResource("tasks", async () => (await command<Tasks>("show tasks")).data, 1500);
  const tell = (task: Task, word: string) => attempt(async () => {
    await command(`tell ${task.task} ${word}`);
    say(t("asked", { n: task.task }));
    await tasks.reload();
  });
  return (
    <>
      <h1>{t("tasks")}</h1>
      <Loaded of={tasks}>{({ running, ended }) => (
        <>
          <section class="card">
            <h2>{t("runningTasks")}</h2>
            {running.length === 0 ? <p class="quiet">{t("noTasks")}</p> : (
              <div class="scrolls" tabIndex={0} role="region" aria-label={t("runningTasks")}><table>
                <thead><tr><th scope="col">{t("task")}</th><th scope="col">{t("database")}</th><th scope="col" style={{ width: "30%" }}>{t("progress")}</th><th scope="col" class="numeric">{t("rate")}</th><th scope="col" class="numeric">{t("remaining")}</th><th /></tr></thead>
                <tbody>{running.map((task) => (
                  <tr>
                    <td>{task.task} {task.kind}</td><td dir="auto">{task.database}</td>
                    <td><progress max={100} {...(task.percent === null ? {} : { value: task.percent })} aria-label={`${task.kind} ${task.database ?? ""}`} />
                      <div class="quiet">{task.total === null ? number(task.done) : `${number(task.done)} / ${number(task.total)}`} {task.paused && t("paused")} {task.cancel_requested && t("stopping")}</div></td>
                    <td class="numeric">{number(task.per_second, 1)}</td><td class="numeric">{task.remaining_seconds === null ? "–" : duration(task.remaining_seconds)}</td>
                    <td class="buttons end"><button type="button" onClick={() => void tell(task, task.paused ? "resume" : "pause")}>{task.paused ? t("resumeTask") : t("pauseTask")}</button><button type="button" onClick={() => void tell(task, "quit")}>{t("stopTask")}</button></td>
                  </tr>
                ))}</tbody></table></div>
            )}
          </section>
          {ended.length > 0 && (
            <section class="card">
              <h2>{t("ended")}</h2>
              <div class="scrolls" tabIndex={0} role="region" aria-label={t("ended")}><table>
                <thead><tr><th scope="col">{t("task")}</th><th scope="col">{t("database")}</th><th scope="col">{t("state")}</th><th scope="col" class="numeric">{t("took")}</th><th scope="col">{t("since")}</th></tr></thead>
                <tbody>{ended.map((task) => (
                  <tr><td>{task.task} {task.kind}</td><td dir="auto">{task.database}</td><td><span class={`pill ${task.state === "failed" ? "bad" : task.state === "finished" ? "good" : ""}`}>{task.state}</span> <span dir="auto">{task.reason}</span></td>
                    <td class="numeric">{duration(task.updated_on - task.started_on)}</td><td>{moment(task.started_on * 1000)}</td></tr>
                ))}</tbody></table></div>
            </section>
          )}
        </>
      )}</Loaded>
      <Console changed={() => void tasks.reload()} />
    </>
  );
}

type Said = { line: string; text: string; failed: boolean };

function keptLines(): string[] {
  try {
    return JSON.parse(localStorage.getItem("commands") ?? "[]") as string[];
  } catch {
    return [];
  }
}

function Console({ changed }: { changed: () => void }) {
  const [line, setLine] = useState(place.value.parameters["command"] ?? "");
  const [said, setSaid] = useState<Said[]>([]);
  const [history, setHistory] = useState(keptLines);
  const [back, setBack] = useState(0);
  const output = useRef<HTMLDivElement>(null);
  const run = async (typed: string) => {
    if (!typed.trim()) return;
    const lines = [typed, ...history.filter((known) => known !== typed)].slice(0, 50);
    setHistory(lines);
    localStorage.setItem("commands", JSON.stringify(lines));
    setBack(0);
    setLine("");
    const answer = await command<unknown>(typed).then(({ text }) => ({ text, failed: false }), (error: Error) => ({ text: error.message, failed: true }));
    setSaid((before) => [...before.slice(-20), { line: typed, ...answer }]);
    changed();
  };
  useEffect(() => {
    output.current?.scrollTo(0, output.current.scrollHeight);
  }, [said]);
  useEffect(() => {
    // A link brings a line; it only asks something, or the person presses Enter.
    const { command: wanted, run: runs } = place.value.parameters;
    if (!wanted) return;
    setLine(wanted);
    change({ command: undefined, run: undefined });
    if (runs && /^(sh|help)/.test(wanted.trim())) void run(wanted);
  }, [place.value.parameters["command"]]);
  const key = (event: KeyboardEvent) => {
    const step = event.key === "ArrowUp" ? 1 : event.key === "ArrowDown" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(history.length, back + step));
    setBack(next);
    setLine(next === 0 ? "" : (history[next - 1] ?? ""));
  };
  return (
    <section class="card" style={{ display: "grid", gap: ".6rem" }}>
      <h2>{t("console")}</h2>
      {said.length > 0 && <div class="terminal" ref={output} role="log" aria-label={t("console")} tabIndex={0}>{said.map(({ line, text, failed }) => <pre>{`> ${line}\n`}{failed ? `! ${text}` : text}{"\n"}</pre>)}</div>}
      <form class="filters" onSubmit={(event) => { event.preventDefault(); void run(line); }}>
        <input class="mono" style={{ flex: 1 }} aria-label={t("commandLine")} placeholder="show server" autocapitalize="none" autocomplete="off" spellcheck={false} value={line} onInput={(event) => setLine(event.currentTarget.value)} onKeyDown={key} />
        <button class="primary">{t("run")}</button>
      </form>
      <p class="quiet">{t("commandHint")}</p>
    </section>
  );
}
