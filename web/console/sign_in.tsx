// The page on which somebody signs in, and the same above a page whose session has ended.

import { useRef } from "preact/hooks";
import { ApiError, person, signIn, signOut } from "../shared/api.ts";
import { Dialog, Field, Form } from "../shared/ui.tsx";
import { Mark } from "./icons.tsx";
import { t } from "./texts.ts";

function SignInForm({ name }: { name?: string | undefined }) {
  const form = useRef<HTMLDivElement>(null);
  const send = async () => {
    const value = (field: string) => form.current!.querySelector<HTMLInputElement>(`[name=${field}]`)!.value;
    try {
      await signIn(value("name"), value("password"));
    } catch (error) {
      const isWrong = error instanceof ApiError && error.status === 401 && /incorrect/i.test(error.reason);
      throw isWrong ? new Error(t("wrongPassword")) : error;
    }
  };
  return (
    <Form send={send} label={t("signIn")}>
      <div ref={form}>
        <Field label={t("name")} name="name" autocomplete="username" autocapitalize="none" spellcheck={false} required first={!name} autofocus={!name} defaultValue={name ?? ""} />
        <Field label={t("password")} name="password" type="password" autocomplete="current-password" required first={Boolean(name)} />
      </div>
    </Form>
  );
}

export function SignInPage() {
  return (
    <main class="welcome">
      <div class="card">
        <h1><Mark /> Scrinium</h1>
        <SignInForm />
      </div>
    </main>
  );
}

export function SignInAgain() {
  return (
    <Dialog title={t("signIn")}>
      <p>{t("signInAgain")}</p><br />
      <SignInForm name={person.value?.name} />
      <div class="buttons"><button type="button" class="plain" onClick={() => void signOut()}>{t("signOut")}</button></div>
    </Dialog>
  );
}
