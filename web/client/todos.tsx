// To-dos of all lists: what is to be done, in its order.

import { useState } from "preact/hooks";
import { useResource, useSettled } from "../shared/data.ts";
import { dateFormat } from "../shared/i18n.ts";
import { attempt, Dialog, Empty, Field, Form, Loaded, say } from "../shared/ui.tsx";
import { t } from "./calendar_texts.ts";
import { parse, write } from "./content.ts";
import { put, read, readTaskLists, readTodos, remove, type Collection } from "./dav.ts";
import { again, calendarRound, looked } from "./events.ts";
import { changes } from "./mailbox.ts";
import { changedTodo, inOrder, isUrgent, newTodo, type Todo, type TodoFields } from "./todo.ts";
import { civilAt, ownZone } from "./zone.ts";

const SETTLED_MS = 3000;
/** Seen at once; more are shown when somebody asks. */
const SHOWN_MAX = 200;

const today = () => civilAt(Date.now(), ownZone()).slice(0, 10);

export function Todos() {
  const [withDone, setWithDone] = useState(false);
  const found = useResource(`todos ${withDone}`, async () => {
    const lists = await readTaskLists();
    const all = await Promise.all(lists.map((list) => readTodos(list, withDone)));
    return { lists, todos: inOrder(all.flat()) };
  }, undefined, `${calendarRound.value} ${useSettled(changes.value, SETTLED_MS)}`);
  return <Loaded of={found}>{({ lists, todos }) => <List lists={lists} todos={todos} withDone={withDone} setWithDone={setWithDone} />}</Loaded>;
}

type ListProps = { lists: Collection[]; todos: Todo[]; withDone: boolean; setWithDone: (value: boolean) => void };

function List({ lists, todos, withDone, setWithDone }: ListProps) {
  const [count, setCount] = useState(SHOWN_MAX);
  const [open, setOpen] = useState<Todo>();
  const list = (href: string) => lists.find((one) => one.href === href);
  return (
    <div class="todos card">
      <Add lists={lists.filter(({ isWritable }) => isWritable)} />
      <label class="check"><input type="checkbox" checked={withDone} onChange={(event) => setWithDone(event.currentTarget.checked)} />{t("showDone")}</label>
      {todos.length === 0 ? <Empty title={t("nothingToDo")} /> : (
        <ul>{todos.slice(0, count).map((todo) => <Row key={todo.href} todo={todo} list={list(todo.list)} edit={() => setOpen(todo)} />)}</ul>
      )}
      {todos.length > count && <button type="button" onClick={() => setCount(count + SHOWN_MAX)}>{t("more", { n: todos.length - count })}</button>}
      {open && <Edit todo={open} mayWrite={list(open.list)?.isWritable ?? false} close={() => setOpen(undefined)} />}
    </div>
  );
}

function Add({ lists }: { lists: Collection[] }) {
  const [subject, setSubject] = useState("");
  const [where, setWhere] = useState(lists[0]?.href ?? "");
  if (lists.length === 0) return null;
  const send = async (event: Event) => {
    event.preventDefault();
    const uid = crypto.randomUUID();
    const text = subject.trim();
    if (!text) return;
    await attempt(async () => {
      const href = `${where}${uid}.ics`;
      const tag = await put(href, write(newTodo({ subject: text, body: "", day: "", isUrgent: false }, uid, Date.now())), undefined);
      setSubject("");
      looked();
      say(t("todoAdded"), async () => { await remove(href, tag); looked(); });
    });
  };
  return (
    <form class="filters" onSubmit={(event) => void send(event)}>
      <input style={{ flex: 1 }} aria-label={t("newTodo")} placeholder={t("newTodo")} maxLength={1000} dir="auto" value={subject} onInput={(event) => setSubject(event.currentTarget.value)} />
      {lists.length > 1 && <select aria-label={t("taskList")} value={where} onChange={(event) => setWhere(event.currentTarget.value)}>{lists.map(({ href, name }) => <option value={href}>{name}</option>)}</select>}
      <button class="primary">{t("create")}</button>
    </form>
  );
}

/** Changes what is stored, with the way back. */
async function store(todo: Todo, change: { fields?: TodoFields; isDone?: boolean }, words: string): Promise<void> {
  let before = "";
  const tag = await again(async () => {
    const resource = await read(todo.href);
    const calendar = parse(resource.data);
    const next = calendar && changedTodo(calendar, change, Date.now());
    if (!next) throw new Error(t("todoGone"));
    before = resource.data;
    return put(todo.href, write(next), resource.tag);
  });
  looked();
  say(words, async () => { await put(todo.href, before, tag); looked(); });
}

/** When something is due, in words. */
function dueOf({ due }: Todo): string {
  const date = due.slice(0, 10);
  const day = dateFormat({ weekday: "short", day: "numeric", month: "short", year: "numeric", timeZone: "UTC" }).format(new Date(`${date}T12:00:00Z`));
  return due.length > 10 ? `${day}, ${due.slice(11, 16)}` : day;
}

function Row({ todo, list, edit }: { todo: Todo; list: Collection | undefined; edit: () => void }) {
  const isLate = !todo.isDone && todo.due !== "" && todo.due.slice(0, 10) < today();
  const toggle = () => attempt(() => store(todo, { isDone: !todo.isDone }, t(todo.isDone ? "todoOpened" : "todoDone")));
  return (
    <li class={todo.isDone ? "done" : ""}>
      <input type="checkbox" aria-label={t("doneOf", { name: todo.subject || t("noSubject") })} checked={todo.isDone} disabled={todo.repeats || !list?.isWritable} title={todo.repeats ? t("todoRepeats") : undefined} onChange={() => void toggle()} />
      <button type="button" class="plain" onClick={edit}><span class="swatch" style={{ background: list?.color }} aria-hidden="true" /> <span class="what" dir="auto">{todo.subject || t("noSubject")}</span>
        {isUrgent(todo) && <span class="pill warn">{t("urgent")}</span>} {todo.due && <span class={`pill ${isLate ? "bad" : ""}`}>{isLate ? t("late", { day: dueOf(todo) }) : dueOf(todo)}</span>} {todo.repeats && <span class="pill">{t("series")}</span>}</button>
    </li>
  );
}

function Edit({ todo, mayWrite, close }: { todo: Todo; mayWrite: boolean; close: () => void }) {
  const [fields, setFields] = useState<TodoFields>({ subject: todo.subject, body: todo.body, day: todo.due.slice(0, 10), isUrgent: isUrgent(todo) });
  const set = (more: Partial<TodoFields>) => setFields({ ...fields, ...more });
  const send = async () => {
    await store(todo, { fields }, t("saved"));
    close();
  };
  const erase = () => attempt(async () => {
    const resource = await read(todo.href);
    await remove(todo.href, resource.tag);
    close();
    looked();
    say(t("todoDeleted"), async () => { await put(todo.href, resource.data, undefined); looked(); });
  });
  return (
    <Dialog title={t("todo")} close={close}>
      <Form label={t("save")} send={send} disabled={!mayWrite || !fields.subject.trim()}>
        <Field label={t("subject")} required first maxLength={1000} dir="auto" value={fields.subject} onInput={(event) => set({ subject: event.currentTarget.value })} />
        <Field label={t("due")} type="date" value={fields.day} onChange={(event) => set({ day: event.currentTarget.value })} />
        <label class="check"><input type="checkbox" checked={fields.isUrgent} onChange={(event) => set({ isUrgent: event.currentTarget.checked })} />{t("urgent")}</label>
        <div class="field"><label for="todo-notes">{t("notes")}</label>
          <textarea id="todo-notes" class="notes" dir="auto" rows={4} maxLength={100_000} value={fields.body} onInput={(event) => set({ body: event.currentTarget.value })} /></div>
      </Form>
      {mayWrite && <div class="buttons"><button type="button" onClick={() => void erase()}>{t("delete")}</button></div>}
    </Dialog>
  );
}
