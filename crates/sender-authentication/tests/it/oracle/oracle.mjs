// What mailauth says of DMARC: a request a line on standard input, its answer a line on standard output, both JSON.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const { dmarc } = createRequire(process.argv[2])("mailauth/lib/dmarc/index.js");

for await (const line of createInterface({ input: process.stdin })) {
  const { author, spf, dkim, zone } = JSON.parse(line);
  const isThere = (name) => zone.some(([owner]) => owner === name || owner.endsWith(`.${name}`));
  const resolver = async (name, type) => {
    const found = zone.filter(([owner, kind]) => owner === name && kind === type).map(([, , value]) => value);
    if (found.length > 0) return type === "TXT" ? found.map((value) => [value]) : found;
    throw Object.assign(new Error(name), { code: isThere(name) ? "ENODATA" : "ENOTFOUND" });
  };
  const found = await dmarc({ headerFrom: [`a@${author}`], spfDomains: spf, dkimDomains: dkim, resolver });
  console.log(JSON.stringify({ result: found.status.result, policy: found.policy ?? null }));
}
