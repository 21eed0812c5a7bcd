// Passkeys: what the server asks of the browser's authenticator, and what it answers (Web Authentication).

import { ask, enter, type Json } from "./api.ts";
import { t } from "./texts.ts";

type Descriptor = { type: "public-key"; id: string };
type RequestOptions = { rpId: string; challenge: string; timeout: number; allowCredentials: Descriptor[]; userVerification: UserVerificationRequirement };
type CreationOptions = {
  rp: PublicKeyCredentialRpEntity; user: { id: string; name: string; displayName: string }; challenge: string; pubKeyCredParams: PublicKeyCredentialParameters[]; timeout: number;
  excludeCredentials: Descriptor[]; authenticatorSelection: AuthenticatorSelectionCriteria; attestation: AttestationConveyancePreference;
};
type Asked<Options> = { publicKey: Options; challenge: string };

/** Bytes of a text in base64url (RFC 4648, section 5). */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

export function textOf(bytes: ArrayBuffer): string {
  const plain = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join("");
  return btoa(plain).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

const descriptors = (all: Descriptor[]): PublicKeyCredentialDescriptor[] => all.map(({ type, id }) => ({ type, id: bytesOf(id) }));

/** Asks the authenticator; why it gives nothing is said in words. */
async function answered(work: () => Promise<Credential | null>): Promise<PublicKeyCredential> {
  try {
    const credential = await work();
    if (credential) return credential as PublicKeyCredential;
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    if (name === "SecurityError") throw new Error(t("passkeyElsewhere"));
    if (name === "InvalidStateError") throw new Error(t("passkeyKnown"));
    if (name !== "NotAllowedError" && name !== "AbortError") throw error;
  }
  throw new Error(t("passkeyNone"));
}

function shown({ id, rawId, type }: PublicKeyCredential, response: { [name: string]: Json }): Json {
  return { id, rawId: textOf(rawId), type, clientExtensionResults: {}, response };
}

/** Signs in with a passkey: alone, or after a first step. */
export async function signInByPasskey(step?: string): Promise<void> {
  const asked = await ask<Asked<RequestOptions>>("POST", "_session/passkey_options", {}, { body: step ? { step } : {} });
  const { publicKey: options } = asked;
  const credential = await answered(() => navigator.credentials.get({ publicKey: { ...options, challenge: bytesOf(options.challenge), allowCredentials: descriptors(options.allowCredentials) } }));
  const response = credential.response as AuthenticatorAssertionResponse;
  const passkey = shown(credential, {
    clientDataJSON: textOf(response.clientDataJSON), authenticatorData: textOf(response.authenticatorData), signature: textOf(response.signature),
    userHandle: response.userHandle ? textOf(response.userHandle) : null,
  });
  await enter({ ...(step ? { step } : {}), challenge: asked.challenge, passkey });
}

/** Has the authenticator make a passkey, and adds it under a name. */
export async function addPasskey(name: string): Promise<void> {
  const asked = await ask<Asked<CreationOptions>>("POST", "_credentials/passkey_options", {}, { body: {} });
  const { publicKey: options } = asked;
  const user = { ...options.user, id: bytesOf(options.user.id) };
  const credential = await answered(() => navigator.credentials.create({ publicKey: { ...options, user, challenge: bytesOf(options.challenge), excludeCredentials: descriptors(options.excludeCredentials) } }));
  const response = credential.response as AuthenticatorAttestationResponse;
  const passkey = shown(credential, { clientDataJSON: textOf(response.clientDataJSON), attestationObject: textOf(response.attestationObject) });
  await ask("POST", "_credentials/passkeys", {}, { body: { challenge: asked.challenge, name, passkey } });
}
