// Texts that all pages share.

import { translator } from "./i18n.ts";

export const t = translator({
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
});
