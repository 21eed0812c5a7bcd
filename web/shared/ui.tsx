// Parts of pages: errors, dialogs, messages with Undo, fields.

import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError } from "./api.ts";
import { t } from "./texts.ts";

/** What went wrong, whole, until it is closed or works. */
export function ErrorBox({ error, retry }: { error: unknown; retry?: () => void }) {
  const known = error instanceof ApiError ? error : undefined;
  const what = known ? (known.status === 0 ? t("noAnswer") : known.reason) : error instanceof Error ? error.message : String(error);
  const details = known ? [known.asked, known.status || "", known.error, known.requestId && `${t("requestId")} ${known.requestId}`] : [];
  return (
    <div class="error" role="alert">
      <div>
        <strong dir="auto">{what}</strong>
        {known && <div class="quiet" dir="auto">{details.filter(Boolean).join(" · ")}</div>}
      </div>
      <div class="buttons">
        {retry && <button type="button" onClick={retry}>{t("retry")}</button>}
        <button type="button" onClick={() => void navigator.clipboard?.writeText([what, ...details].join("\n"))}>{t("copy")}</button>
      </div>
    </div>
  );
}

/** A dialog above the page; Escape closes it. */
export function Dialog({ title, close, children }: { title: string; close?: (() => void) | undefined; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    element.current?.showModal();
    element.current?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => before?.focus?.();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); close?.(); }}>
      <div class="dialog-head">
        <h2 id={id} dir="auto">{title}</h2>
        {close && <button type="button" class="plain" aria-label={t("close")} onClick={close}>✕</button>}
      </div>
      {children}
    </dialog>
  );
}

type FieldProps = JSX.IntrinsicElements["input"] & { label: string; hint?: string | undefined; first?: boolean };

export function Field({ label, hint, first, ...input }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input id={id} aria-describedby={hint ? `${id}-hint` : undefined} data-first={first ? "" : undefined} {...input} />
      {hint && <div class="quiet" id={`${id}-hint`}>{hint}</div>}
    </div>
  );
}

/** A form that is sent once at a time, and shows why it failed. */
export function Form({ send, label, danger, quiet, disabled, children }: {
  send: () => Promise<unknown>; label: string; danger?: boolean; /** Its button is not the one that is meant first. */ quiet?: boolean | undefined; disabled?: boolean; children?: ComponentChildren;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || disabled) return;
    setBusy(true);
    setError(undefined);
    try {
      await send();
    } catch (reason) {
      setError(reason);
    }
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      {children}
      {error !== undefined && <ErrorBox error={error} />}
      <div class="buttons end"><button class={danger ? "danger" : quiet ? "" : "primary"} disabled={disabled} aria-busy={busy}>{label}</button></div>
    </form>
  );
}

type Message = { id: number; text: string; undo?: (() => Promise<unknown>) | undefined; error?: unknown };
const messages = signal<Message[]>([]);
let count = 0;

/** Says that something was done; with a way back for ten seconds, and on `z`. */
export function say(text: string, undo?: () => Promise<unknown>): void {
  const message = { id: ++count, text, undo };
  messages.value = [...messages.value.slice(-2), message];
  setTimeout(() => dismiss(message.id), 10_000);
}

/** Shows an error that no part of the page has a place for; it stays until it is closed. */
export function complain(error: unknown): void {
  messages.value = [...messages.value, { id: ++count, text: "", error }];
}

/** Carries something out and complains if it fails. */
export async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    complain(error);
  }
}

function dismiss(id: number) {
  messages.value = messages.value.filter((message) => message.id !== id);
}

/** Takes the last thing back that can be. */
export function undoLast(): void {
  const last = messages.value.findLast((message) => message.undo);
  if (!last?.undo) return;
  dismiss(last.id);
  void attempt(last.undo);
}

export function Messages() {
  return (
    <div class="messages">
      <div role="status" aria-live="polite" class="hidden">{messages.value.at(-1)?.text}</div>
      {messages.value.map((message) => (
        <div class="message" key={message.id}>
          {message.error !== undefined ? <ErrorBox error={message.error} /> : <span dir="auto">{message.text}</span>}
          {message.undo && <button type="button" onClick={() => { dismiss(message.id); void attempt(message.undo!); }}>{t("undo")}</button>}
          <button type="button" class="plain" aria-label={t("close")} onClick={() => dismiss(message.id)}>✕</button>
        </div>
      ))}
    </div>
  );
}

export function Tabs({ label, tabs, current }: { label: string; tabs: { id: string; title: string; href: string }[]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => <a href={tab.href} aria-current={tab.id === current ? "page" : undefined}>{tab.title}</a>)}
    </nav>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return <div class="empty"><h3>{title}</h3>{children}</div>;
}

/** A part of the page that one fetch fills: the error if it failed, a shape of what is to come at first, else its content. */
export function Loaded<T>({ of, children }: { of: { data: { value: T | undefined }; error: { value: unknown }; loading: { value: boolean }; reload: () => Promise<void> }; children: (data: T) => ComponentChildren }) {
  const { data, error } = of;
  return (
    <>
      {error.value !== undefined && <ErrorBox error={error.value} retry={() => void of.reload()} />}
      {data.value !== undefined ? children(data.value) : error.value === undefined && <div class="bones" aria-busy="true"><span class="bone" /><span class="bone" /><span class="bone" /></div>}
    </>
  );
}
