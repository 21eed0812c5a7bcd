// What is done with a memo that was found: it may lie in several folders, so it is taken out of those that it is in.

import { go } from "../shared/route.ts";
import type { Actions } from "./list.tsx";
import { folders, INBOX, mark, moveTo, star } from "./mailbox.ts";

/** Folders are tried in this order: a memo that is not in one stays as it is. */
const from = () => folders.value?.find(({ name }) => name === INBOX)?.name ?? INBOX;

export function forSearch(id: string, q: string): Actions {
  const back = () => go(["search"], { q });
  return {
    archive: () => void moveTo([id], from(), "archive").then(back),
    remove: () => void moveTo([id], from(), "trash").then(back),
    junk: () => void moveTo([id], from(), "junk").then(back),
    move: () => undefined,
    read: () => void mark([id], true),
    unread: () => void mark([id], false).then(back),
    star: (on = true) => void star([id], on),
    next: back,
    previous: back,
    back,
  };
}
