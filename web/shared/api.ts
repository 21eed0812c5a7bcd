// Requests to the server that the page came from. What fails is an ApiError that says what was asked, and why it was refused.

import { signal } from "@preact/signals";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };

/** A document as the server sends it. */
export type Document = { _id: string; _rev: string; [member: string]: Json };

/** Why a request brought no answer that can be used. */
export class ApiError extends Error {
  constructor(
    /** 0: there was no answer at all. */
    readonly status: number,
    readonly error: string,
    readonly reason: string,
    readonly asked: string,
    readonly requestId: string,
    /** The whole answer. */
    readonly content: Json = null,
  ) {
    super(reason);
  }
}

/** Who is signed in; `null` until somebody is, `undefined` while nobody knows yet. */
export const person = signal<{ name: string; roles: string[] } | null | undefined>(undefined);

/** Whether a request waits for somebody to sign in again: the session has ended, or the server wants to see once more that it is them. */
export const needsSignIn = signal<"" | "ended" | "proof">("");

let waiting: { resume: () => void; giveUp: (reason: unknown) => void }[] = [];

const root = new URL("..", typeof document === "undefined" ? "http://localhost/_utils/" : document.baseURI);

/** A path of segments that are encoded each by itself. */
export function pathOf(...segments: string[]): string {
  return segments.map((segment) => encodeURIComponent(segment)).join("/");
}

/** The path of a document: the slash behind `_design` and `_local` is one of the path. */
export function documentPath(database: string, id: string): string {
  const [prefix, ...rest] = id.split("/");
  const special = (prefix === "_design" || prefix === "_local") && rest.length > 0;
  return special ? `${pathOf(database)}/${prefix}/${pathOf(rest.join("/"))}` : pathOf(database, id);
}

/** A path's whole address, with parameters; those that are undefined are left out, others than texts are JSON. */
export function addressOf(path: string, parameters: { [name: string]: Json | undefined } = {}): string {
  const address = new URL(path, root);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    address.searchParams.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  return address.href;
}

type Options = { body?: Json | Blob; signal?: AbortSignal; headers?: { [name: string]: string } };

/** Sends a request and gives its JSON. A session that has ended is renewed by the person, above the page, and nothing is lost. */
export async function ask<T>(
  method: string,
  path: string,
  parameters: { [name: string]: Json | undefined } = {},
  options: Options = {},
): Promise<T> {
  for (;;) {
    const answer = await send(method, addressOf(path, parameters), options);
    if (answer.status === 401 && person.value && path !== "_session") {
      await signedInAgain("ended");
      continue;
    }
    try {
      return (await contentOf(answer, `${method} /${path}`)) as T;
    } catch (error) {
      if (!(error instanceof ApiError) || error.error !== "sign_in_again" || !person.value) throw error;
      await signedInAgain("proof", error);
    }
  }
}

/** By how much the server's clock is ahead of this device's. */
let aheadMs = 0;

/** What the server's clock shows, to a second. */
export const serverNow = (): number => Date.now() + aheadMs;

async function send(method: string, address: string, { body, signal, headers }: Options): Promise<Response> {
  const isBlob = typeof Blob !== "undefined" && body instanceof Blob;
  // Without the second header a browser would ask for a name and a password by a window of its own.
  const all: { [name: string]: string } = { Accept: "application/json", "X-CouchDB-WWW-Authenticate": "Cookie", ...headers };
  if (body !== undefined && !isBlob) all["Content-Type"] = "application/json";
  const sent = body === undefined ? null : isBlob ? body : JSON.stringify(body);
  try {
    const answer = await fetch(address, { method, headers: all, body: sent, signal: signal ?? null, credentials: "same-origin" });
    const date = Date.parse(answer.headers.get("date") ?? "");
    if (!Number.isNaN(date)) aheadMs = date - Date.now();
    return answer;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "no_answer", "", `${method} ${new URL(address).pathname}`, "");
  }
}

async function contentOf(answer: Response, asked: string): Promise<Json> {
  const text = await answer.text();
  const requestId = answer.headers.get("x-couch-request-id") ?? "";
  let content: Json;
  try {
    content = text === "" ? null : (JSON.parse(text) as Json);
  } catch {
    throw new ApiError(answer.status, "no_json", text.slice(0, 300), asked, requestId);
  }
  if (answer.ok) return content;
  const { error, reason } = (content ?? {}) as { error?: string; reason?: string };
  throw new ApiError(answer.status, error ?? "error", reason ?? answer.statusText, asked, requestId, content);
}

/** What a request that is no JSON brings. */
export type TextAnswer = { text: string; tag: string; answer: XMLDocument | null };

/**
 * Sends a request whose answer is a text, or XML that becomes a document: by the browser's reader of answers, since no page makes
 * documents of texts here (Trusted Types).
 */
export async function askText(method: string, path: string, body?: string, headers: { [name: string]: string } = {}, isXml = false): Promise<TextAnswer> {
  for (;;) {
    const request = await sent(method, addressOf(path), body, headers, isXml);
    const asked = `${method} /${path}`;
    if (request.status === 0) throw new ApiError(0, "no_answer", "", asked, "");
    if (request.status === 401 && person.value) {
      await signedInAgain("ended");
      continue;
    }
    const answer = isXml ? request.responseXML : null;
    const text = isXml ? "" : request.responseText;
    if (request.status < 300) return { text, tag: request.getResponseHeader("etag") ?? "", answer };
    const reason = (isXml ? answer?.documentElement?.textContent : reasonIn(text)) || request.statusText;
    throw new ApiError(request.status, "error", reason.trim().slice(0, 300), asked, request.getResponseHeader("x-couch-request-id") ?? "");
  }
}

/** What an error says in words, whichever way it is written. */
const reasonIn = (text: string): string => (/"reason":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text.replace(/<[^>]*>/g, " ")).trim();

function sent(method: string, address: string, body: string | undefined, headers: { [name: string]: string }, isXml: boolean): Promise<XMLHttpRequest> {
  const request = new XMLHttpRequest();
  request.open(method, address);
  if (isXml) request.responseType = "document";
  for (const [name, value] of Object.entries({ "X-CouchDB-WWW-Authenticate": "Cookie", ...headers })) request.setRequestHeader(name, value);
  return new Promise((resolve) => {
    request.onloadend = () => resolve(request);
    request.send(body ?? null);
  });
}

/** Waits until the person has signed in again, above the page. */
export function signedInAgain(why: "ended" | "proof" = "ended", refusal?: ApiError): Promise<void> {
  needsSignIn.value = needsSignIn.value === "ended" ? "ended" : why;
  return new Promise((resume, giveUp) => waiting.push({ resume, giveUp: () => giveUp(refusal) }));
}

/** The person does not want to sign in for what was asked: it fails. */
export function declineSignIn(): void {
  needsSignIn.value = "";
  const given = waiting;
  waiting = [];
  for (const { giveUp } of given) giveUp(undefined);
}

/** Has the person sign in once more, for what the server takes from nobody else. */
export const signInFirst = (): Promise<void> => signedInAgain("proof");

/** Whether this server offers passkeys, and this browser knows them. */
export const offersPasskeys = signal(false);

/** Finds out whether somebody is signed in. */
export async function findPerson(): Promise<void> {
  const { userCtx, info } = await ask<{ userCtx: { name: string | null; roles: string[] }; info?: { authentication_handlers?: string[] } }>("GET", "_session");
  offersPasskeys.value = typeof PublicKeyCredential !== "undefined" && (info?.authentication_handlers?.includes("passkey") ?? false);
  person.value = userCtx.name === null ? null : { name: userCtx.name, roles: userCtx.roles };
}

/** Signs somebody in; requests that waited for it go on, if it is the same person. */
export async function signIn(name: string, password: string): Promise<void> {
  await enter({ name, password });
}

/** The second step, where the first one said which. */
export async function signInByCode(step: string, code: string): Promise<void> {
  await enter({ step, code });
}

/** Shows the server who signs in. */
export async function enter(proof: Json): Promise<void> {
  const before = person.value?.name;
  const told = await ask<{ name: string; roles: string[] }>("POST", "_session", {}, { body: proof });
  if (before && before !== told.name) location.reload();
  person.value = { name: told.name, roles: told.roles };
  needsSignIn.value = "";
  const resumed = waiting;
  waiting = [];
  for (const { resume } of resumed) resume();
}

/** Signs out. */
export async function signOut(): Promise<void> {
  await ask("DELETE", "_session");
  location.hash = "";
  location.reload();
}

/** Whether the person may administer the server. */
export function isAdministrator(): boolean {
  return person.value?.roles.includes("_admin") ?? false;
}

/** The answer of a command of the server's console. */
export async function command<T>(line: string): Promise<{ text: string; data: T }> {
  return ask("POST", "_console", {}, { body: { command: line } });
}
