"""Other implementations: a request a line on standard input, its answer a line on standard output, both JSON."""

import base64
import calendar
import importlib.abc
import importlib.machinery
import json
import sys
import time
from unittest.mock import MagicMock

import dkim
import spf
import yaml


def suite(request):
    """The scenarios of the SPF suite, as zones and tests."""
    scenarios = []
    for document in yaml.safe_load_all(open(request["file"], "rb")):
        zone = []
        for name, records in document["zonedata"].items():
            texts = [r for r in records if isinstance(r, dict) and "TXT" in r]
            has_text = any(r["TXT"] != "NONE" for r in texts)
            for record in records:
                if not isinstance(record, dict):
                    # Nobody asks for records of the kind SPF any more, of which this is said next to a text.
                    if not has_text:
                        zone.append([name, "FAIL", ""])
                    continue
                for kind, value in record.items():
                    if kind == "SPF" and texts:
                        continue
                    kind = "TXT" if kind == "SPF" else kind
                    if value == "NONE":
                        continue
                    if kind == "TXT" and isinstance(value, list):
                        value = "".join(value)
                    if kind == "MX":
                        value = value[1]
                    zone.append([name, kind, value])
        tests = []
        for name, test in document["tests"].items():
            result = test["result"]
            tests.append({
                "name": name,
                "address": test["host"],
                "sender": test["mailfrom"],
                "helo": test["helo"],
                "results": result if isinstance(result, list) else [result],
                "explanation": test.get("explanation"),
            })
        scenarios.append({"zone": zone, "tests": tests})
    return scenarios


def check_spf(request):
    """The verdict of pyspf."""
    zone = request["zone"]

    def lookup(name, kind, *_, **__):
        name = name.rstrip(".").lower()
        found = [value for owner, k, value in zone if owner == name and k == kind]
        if any(owner == name and k == "FAIL" for owner, k, _ in zone):
            raise spf.TempError("DNS timeout")
        if kind == "TXT":
            return [((name, kind), (value.encode(),)) for value in found]
        if kind == "MX":
            return [((name, kind), (10, value)) for value in found]
        if kind == "AAAA":
            import ipaddress
            return [((name, kind), ipaddress.IPv6Address(value).packed) for value in found]
        return [((name, kind), value) for value in found]

    spf.DNSLookup = lookup
    return spf.check2(i=request["address"], s=request["sender"], h=request["helo"], timeout=20)[0]


def keys(request):
    records = {name.encode() + b".": value.encode() for name, value in request["keys"].items()}
    return lambda name, timeout=5: records.get(name if name.endswith(b".") else name + b".")


def verify(request):
    """Whether dkimpy believes each signature."""
    message = base64.b64decode(request["message"])
    lookup = keys(request)
    found = []
    for place in range(request["signatures"]):
        try:
            found.append(dkim.DKIM(message, minkey=1024).verify(idx=place, dnsfunc=lookup))
        except dkim.DKIMException:
            found.append(False)
    return found


def sign(request):
    """A message with dkimpy's signature."""
    message = base64.b64decode(request["message"])
    canonicalize = tuple(form.encode() for form in request["forms"])
    algorithm = request["algorithm"].encode()
    field = dkim.sign(
        message, request["selector"].encode(), request["domain"].encode(), request["key"].encode(),
        canonicalize=canonicalize, signature_algorithm=algorithm, linesep=b"\r\n",
    )
    return base64.b64encode(field + message).decode()


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands for what parsedmarc imports to fetch mail and to look addresses up, which no report needs."""

    NAMES = {
        "azure", "google", "google_auth_oauthlib", "googleapiclient", "html2text", "imapclient", "kafka", "kiota_abstractions",
        "mailparser", "mailsuite", "maxminddb", "msal", "msgraph", "publicsuffix2", "publicsuffixlist", "requests", "tqdm",
    }

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in self.NAMES:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__ = [], spec
        return module

    def exec_module(self, module):
        pass


def report(request):
    """A DMARC report as parsedmarc reads it; nothing if it reads none."""
    if not any(isinstance(finder, Absent) for finder in sys.meta_path):
        sys.meta_path.append(Absent())
    import parsedmarc
    try:
        found = parsedmarc.parse_aggregate_report_xml(request["xml"], offline=True, always_use_local_files=True)
    except parsedmarc.ParserError:
        return None
    rows = []
    for record in found["records"]:
        evaluated = record["policy_evaluated"]
        rows.append([
            record["source"]["ip_address"], record["count"], evaluated["disposition"], record["alignment"]["dkim"],
            record["alignment"]["spf"], record["identifiers"]["header_from"],
            [[reason["type"], reason["comment"] or ""] for reason in evaluated["policy_override_reasons"]],
            [[dkim["domain"], dkim["selector"], dkim["result"]] for dkim in record["auth_results"]["dkim"]],
            [[spf["domain"], spf["result"]] for spf in record["auth_results"]["spf"]],
        ])
    seconds = lambda text: calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S"))
    metadata, policy = found["report_metadata"], found["policy_published"]
    return {
        "organization": metadata["org_name"], "id": metadata["report_id"], "begin": seconds(metadata["begin_date"]),
        "end": seconds(metadata["end_date"]), "errors": metadata["errors"], "domain": policy["domain"], "policy": policy["p"],
        "subdomains": policy["sp"], "adkim": policy["adkim"], "aspf": policy["aspf"], "rows": rows,
    }


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(globals()[asked["do"]](asked)), flush=True)
