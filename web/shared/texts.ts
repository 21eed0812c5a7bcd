// Texts that all pages share.

import { translator } from "./i18n.ts";

/** The table, for programs that have more. */
export const SHARED = {
  noAnswer: ["The server does not answer.", "Der Server antwortet nicht."],
  requestId: ["request", "Anfrage"],
  retry: ["Try again", "Erneut versuchen"],
  copy: ["Copy", "Kopieren"],
  close: ["Close", "Schließen"],
  cancel: ["Cancel", "Abbrechen"],
  undo: ["Undo", "Rückgängig"],
  chartTable: ["Show as a table", "Als Tabelle zeigen"],
  chartNone: ["Nothing has been recorded for this time.", "Für diese Zeit ist nichts aufgezeichnet."],
  time: ["Time", "Zeit"],
  theme: ["Theme", "Erscheinungsbild"],
  themeSystem: ["As the system", "Wie das System"],
  themeLight: ["Light", "Hell"],
  themeDark: ["Dark", "Dunkel"],
  language: ["Language", "Sprache"],
  signOut: ["Sign out", "Abmelden"],
  account: ["Account: {name}", "Konto: {name}"],
  keys: ["Keys", "Tasten"],
  singleKeys: ["Keys without Ctrl do something", "Tasten ohne Strg tun etwas"],
  signIn: ["Sign in", "Anmelden"],
  signInAgain: ["Your session has ended. Sign in again to go on; nothing on this page is lost.", "Ihre Sitzung ist abgelaufen. Melden Sie sich erneut an; auf dieser Seite geht nichts verloren."],
  signInProof: ["Show once more that it is you: this changes what opens your account, or where your mail goes.", "Zeigen Sie noch einmal, dass Sie es sind: Das ändert, womit man in Ihr Konto kommt oder wohin Ihre Post geht."],
  name: ["Name", "Name"],
  password: ["Password", "Passwort"],
  wrongPassword: ["The name or the password is wrong.", "Name oder Passwort ist falsch."],
  skip: ["Skip to the content", "Zum Inhalt springen"],
  notFound: ["There is no such page.", "Diese Seite gibt es nicht."],
  newPassword: ["New password", "Neues Passwort"],
  code: ["Code of your authenticator, or a recovery code", "Code Ihres Authenticators oder ein Wiederherstellungscode"],
  wrongCode: ["The code is wrong, or was used already.", "Der Code ist falsch oder wurde schon benutzt."],
  signInByPasskey: ["Sign in with a passkey", "Mit einem Passkey anmelden"],
  usePasskey: ["Use a passkey", "Passkey benutzen"],
  wrongPasskey: ["This passkey opens no account here.", "Dieser Passkey öffnet hier kein Konto."],
  passkeyNone: ["No passkey was used.", "Es wurde kein Passkey benutzt."],
  passkeyKnown: ["This device has a passkey of yours already.", "Dieses Gerät hat schon einen Passkey von Ihnen."],
  passkeyElsewhere: ["Passkeys belong to another address of this server. Open the page there.", "Passkeys gehören zu einer anderen Adresse dieses Servers. Öffnen Sie die Seite dort."],
  setUpFirst: ["Your account needs a second factor, which is not set up yet. Ask an administrator.", "Ihr Konto braucht einen zweiten Faktor, der noch nicht eingerichtet ist. Fragen Sie die Verwaltung."],
} as const;

export const t = translator(SHARED);
