// A provider of OpenID Connect for tests: everybody whom a browser claims to be (the cookie `who`) signs in, and agrees to all. It
// prints its address, and ends with its standard input.
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const [redirect, secret] = process.argv.slice(2);
const server = createServer();
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    { client_id: "scrinium", client_secret: secret, redirect_uris: [redirect], response_types: ["code"] },
    {
      client_id: "public",
      token_endpoint_auth_method: "none",
      redirect_uris: [redirect],
      response_types: ["code"],
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["of a test"] },
  features: { devInteractions: { enabled: false } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@acme.example`, email_verified: id !== "mallory" }),
  }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  pkce: { required: () => true },
});

async function interact(request, response) {
  const details = await provider.interactionDetails(request, response);
  const { params, prompt, session } = details;
  if (prompt.name === "login") {
    const who = /who=([a-z]+)/.exec(request.headers.cookie ?? "")?.[1];
    const result = who ? { login: { accountId: who } } : { error: "access_denied" };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

const usual = provider.callback();
server.on("request", (request, response) => {
  if (!request.url.startsWith("/interaction/")) return usual(request, response);
  interact(request, response).catch((error) => {
    response.statusCode = 500;
    response.end(String(error));
  });
});
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
console.log(issuer);
