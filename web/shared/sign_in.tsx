// The page on which somebody signs in, and the same above a page whose session has ended.

import { useRef, useState } from "preact/hooks";
import { ApiError, declineSignIn, needsSignIn, offersPasskeys, person, signIn, signInByCode, signOut } from "./api.ts";
import { Mark } from "./mark.tsx";
import { signInByPasskey } from "./passkey.ts";
import { t } from "./texts.ts";
import { Dialog, Field, Form } from "./ui.tsx";

/** What the server wants of somebody whose password alone is not enough. */
type SecondStep = { step?: string; second_steps?: string[] };

function SignInForm({ name }: { name?: string | undefined }) {
  const form = useRef<HTMLDivElement>(null);
  const [second, setSecond] = useState<SecondStep>();
  const value = (field: string) => form.current!.querySelector<HTMLInputElement>(`[name=${field}]`)!.value;
  const send = async () => {
    try {
      await (second?.step ? signInByCode(second.step, value("code").trim()) : signIn(value("name"), value("password")));
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      if (error.error === "second_step_required") return setSecond(error.content as SecondStep);
      if (second) throw new Error(t("wrongCode"));
      throw /incorrect/i.test(error.reason) ? new Error(t("wrongPassword")) : error;
    }
  };
  const byPasskey = async () => {
    try {
      await signInByPasskey(second?.step);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) throw new Error(t("wrongPasskey"));
      throw error;
    }
  };
  const takesCode = !second || second.second_steps?.includes("code");
  const takesPasskey = offersPasskeys.value && (!second || second.second_steps?.includes("passkey"));
  if (!takesCode && !takesPasskey) return <p class="note warn">{t("setUpFirst")}</p>;
  return (
    <>
      {takesCode && <ByTyping key={second ? "second" : "first"} form={form} name={name} isSecond={second !== undefined} send={send} />}
      {takesPasskey && <Form send={byPasskey} label={t(second ? "usePasskey" : "signInByPasskey")} quiet={takesCode} />}
    </>
  );
}

type ByTypingProps = { form: { current: HTMLDivElement | null }; name?: string | undefined; isSecond: boolean; send: () => Promise<void> };

function ByTyping({ form, name, isSecond, send }: ByTypingProps) {
  return (
    <Form send={send} label={t("signIn")}>
      <div ref={form}>
        {isSecond
          ? <Field label={t("code")} name="code" autocomplete="one-time-code" required first autofocus />
          : <>
              <Field label={t("name")} name="name" autocomplete="username" autocapitalize="none" spellcheck={false} required first={!name} autofocus={!name} defaultValue={name ?? ""} />
              <Field label={t("password")} name="password" type="password" autocomplete="current-password" required first={Boolean(name)} />
            </>}
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
  const isProof = needsSignIn.value === "proof";
  return (
    <Dialog title={t("signIn")} close={isProof ? declineSignIn : undefined}>
      <p>{t(isProof ? "signInProof" : "signInAgain")}</p><br />
      <SignInForm name={person.value?.name} />
      {!isProof && <div class="buttons"><button type="button" class="plain" onClick={() => void signOut()}>{t("signOut")}</button></div>}
    </Dialog>
  );
}
