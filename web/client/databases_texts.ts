// Texts of databases that somebody reads.

import { translator } from "../shared/i18n.ts";
import { SHARED } from "../shared/texts.ts";

export const t = translator({
  ...SHARED,
  databases: ["Databases", "Datenbanken"],
  openNamed: ["Open a database", "Datenbank öffnen"],
  databaseName: ["Name of the database", "Name der Datenbank"],
  open: ["Open", "Öffnen"],
  recent: ["Opened here before", "Hier schon geöffnet"],
  noneYet: ["No database has been opened here yet", "Hier wurde noch keine Datenbank geöffnet"],
  noneYetWhat: ["Ask those who keep one for its name. You see in it what you may read.", "Fragen Sie die, die eine führen, nach ihrem Namen. Sie sehen darin, was Sie lesen dürfen."],
  forget: ["Forget {name}", "{name} vergessen"],
  view: ["View", "Ansicht"],
  allDocuments: ["All documents", "Alle Dokumente"],
  noRows: ["Nothing is in this view that you may read", "In dieser Ansicht ist nichts, was Sie lesen dürfen"],
  goToText: ["Find the beginning of a row", "Anfang einer Zeile finden"],
  rows: ["{n|One row|{n} rows}", "{n|Eine Zeile|{n} Zeilen}"],
  category: ["Category", "Kategorie"],
  notCategorized: ["(not categorized)", "(ohne Kategorie)"],
  document: ["Document", "Dokument"],
  key: ["Key", "Schlüssel"],
  value: ["Value", "Wert"],
  files: ["Files", "Dateien"],
  back: ["Back to the list", "Zurück zur Liste"],
  shownOnly: ["The first {n} rows are shown.", "Die ersten {n} Zeilen werden gezeigt."],
});
