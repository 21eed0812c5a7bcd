// One's own password.

import { useState } from "preact/hooks";
import { ask, documentPath, person, signIn, type Document } from "../shared/api.ts";
import { Dialog, Field, Form, say } from "../shared/ui.tsx";
import { t } from "./texts.ts";

export function Password({ close }: { close: () => void }) {
  const [before, setBefore] = useState("");
  const [after, setAfter] = useState("");
  const name = person.value?.name ?? "";
  const send = async () => {
    // The server takes another password from somebody who has just signed in.
    await signIn(name, before);
    const path = documentPath("_users", `org.couchdb.user:${name}`);
    const document = await ask<Document>("GET", path);
    await ask("PUT", path, {}, { body: { ...document, password: after } });
    await signIn(name, after);
    close();
    say(t("passwordChanged"));
  };
  return (
    <Dialog title={t("changePassword")} close={close}>
      <Form label={t("changePassword")} send={send}>
        <input type="hidden" name="username" autocomplete="username" value={name} />
        <Field label={t("oldPassword")} type="password" autocomplete="current-password" required first value={before} onInput={(event) => setBefore(event.currentTarget.value)} />
        <Field label={t("newPassword")} type="password" autocomplete="new-password" required value={after} onInput={(event) => setAfter(event.currentTarget.value)} />
      </Form>
    </Dialog>
  );
}
