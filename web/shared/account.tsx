// A person's own settings of the pages, and the page of keys.

import type { ComponentChildren } from "preact";
import { person, signOut } from "./api.ts";
import { LANGUAGES, language, setLanguage } from "./i18n.ts";
import { bindings, singleKeys } from "./keys.ts";
import { t } from "./texts.ts";
import { setTheme, theme, type Theme } from "./theme.ts";
import { Dialog } from "./ui.tsx";

/** Theme, language, keys and the way out; a program adds what it has. */
export function Account({ close, showKeys, children }: { close: () => void; showKeys: () => void; children?: ComponentChildren }) {
  return (
    <Dialog title={person.value?.name ?? ""} close={close}>
      <div class="field"><label for="theme">{t("theme")}</label>
        <select id="theme" value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
          <option value="system">{t("themeSystem")}</option><option value="light">{t("themeLight")}</option><option value="dark">{t("themeDark")}</option>
        </select></div>
      <div class="field"><label for="language">{t("language")}</label>
        <select id="language" value={language.value} onChange={(event) => setLanguage(event.currentTarget.value as (typeof LANGUAGES)[number])}>
          <option value="en" lang="en">English</option><option value="de" lang="de">Deutsch</option>
        </select></div>
      {children}
      <div class="spread">
        <button type="button" onClick={showKeys}>{t("keys")} <kbd>?</kbd></button>
        <button type="button" onClick={() => void signOut()}>{t("signOut")}</button>
      </div>
    </Dialog>
  );
}

/** What the keys do, and the switch for those without Ctrl. */
export function KeysPage({ close }: { close: () => void }) {
  return (
    <Dialog title={t("keys")} close={close}>
      <label class="check">
        <input type="checkbox" checked={singleKeys.value} onChange={(event) => {
          singleKeys.value = event.currentTarget.checked;
          localStorage.setItem("keys", singleKeys.value ? "on" : "off");
        }} />{t("singleKeys")}
      </label>
      <table><tbody>
        {bindings().sort((a, b) => (a.keys < b.keys ? -1 : 1)).map(({ keys, what }) => <tr><td>{keys.split(" ").map((key) => <><kbd>{key}</kbd> </>)}</td><td>{what}</td></tr>)}
      </tbody></table>
    </Dialog>
  );
}
