// A mail domain: who administers it, and what others see of its people.

import { useState } from "preact/hooks";
import { ask, documentPath, type Document, type Json } from "../../shared/api.ts";
import { hashOf } from "../../shared/route.ts";
import { Dialog, Field, Form, say } from "../../shared/ui.tsx";
import { t } from "../texts.ts";

const names = (value: Json | undefined): string => (Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : "");
const listOf = (text: string): string[] => text.split(",").map((name) => name.trim()).filter(Boolean);

/** The domain that a document is of. */
export const domainOf = (entry: Document): string => entry._id.replace(/^domain:/, "");

/** A domain's document: a new one where there is none. */
export function DomainDialog({ entry, close, changed }: { entry?: Document | undefined; close: () => void; changed: () => void }) {
  const [domain, setDomain] = useState(entry ? domainOf(entry) : "");
  const [administrators, setAdministrators] = useState(names(entry?.["Administrators"]));
  const [see, setSee] = useState(names(entry?.["OutsidersSee"]));
  const send = async () => {
    const path = documentPath("directory", entry?._id ?? `domain:${domain}`);
    const current = entry ? await ask<Document>("GET", path) : { Form: "Domain" };
    const { OutsidersSee: _, ...rest } = current as { [member: string]: Json };
    await ask("PUT", path, {}, { body: { ...rest, Administrators: listOf(administrators), ...(see ? { OutsidersSee: see } : {}) } });
    close();
    say(t("saved", { id: domain }));
    changed();
  };
  return (
    <Dialog title={entry ? domain : t("newDomain")} close={close}>
      {entry && <p><a href={hashOf(["mail"], { check: domain })}>{t("checkDns")}</a></p>}
      <Form label={entry ? t("save") : t("create")} send={send}>
        {!entry && <Field label={t("domain")} required first placeholder="example.org" autocapitalize="none" spellcheck={false} value={domain} onInput={(event) => setDomain(event.currentTarget.value.trim().toLowerCase())} />}
        <Field label={t("administrators")} hint={t("administratorsHint")} first={Boolean(entry)} autocapitalize="none" spellcheck={false} value={administrators} onInput={(event) => setAdministrators(event.currentTarget.value)} />
        <div class="field"><label for="see">{t("outsidersSee")}</label>
          <select id="see" value={see} onChange={(event) => setSee(event.currentTarget.value)}>
            <option value="">{t("seeUnset")}</option><option value="nothing">{t("seeNothing")}</option><option value="addresses">{t("seeAddresses")}</option><option value="all">{t("seeAll")}</option>
          </select></div>
      </Form>
    </Dialog>
  );
}
