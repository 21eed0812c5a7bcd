// Texts of contacts.

import { translator } from "../shared/i18n.ts";
import { SHARED } from "../shared/texts.ts";

export const t = translator({
  ...SHARED,
  contacts: ["Contacts", "Kontakte"],
  filter: ["Find a contact", "Kontakt finden"],
  newContact: ["New contact", "Neuer Kontakt"],
  editContact: ["Edit contact", "Kontakt bearbeiten"],
  none: ["There are no contacts yet", "Es gibt noch keine Kontakte"],
  noneWhat: ["Those whom you add here are offered when you write, and your phone finds them by CardDAV.", "Wen Sie hier eintragen, der wird beim Schreiben angeboten, und Ihr Telefon findet ihn über CardDAV."],
  noneFound: ["Nobody is called so", "So heißt niemand"],
  firstName: ["First name", "Vorname"],
  lastName: ["Last name", "Nachname"],
  emails: ["Addresses, one a line", "Adressen, eine je Zeile"],
  phones: ["Telephone numbers, one a line", "Telefonnummern, eine je Zeile"],
  company: ["Company", "Firma"],
  jobTitle: ["Position", "Position"],
  note: ["Note", "Notiz"],
  address: ["Address", "Adresse"],
  phone: ["Telephone", "Telefon"],
  save: ["Save", "Speichern"],
  edit: ["Edit", "Bearbeiten"],
  delete: ["Delete", "Löschen"],
  writeTo: ["Write to {name}", "{name} schreiben"],
  saved: ["The contact is saved.", "Der Kontakt ist gespeichert."],
  deleted: ["The contact is deleted.", "Der Kontakt ist gelöscht."],
  back: ["Back to the list", "Zurück zur Liste"],
  needsName: ["A contact has a name, a company or an address.", "Ein Kontakt hat einen Namen, eine Firma oder eine Adresse."],
});
