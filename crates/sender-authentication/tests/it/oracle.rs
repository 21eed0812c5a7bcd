//! Second opinions: the SPF suite that comes with pyspf, pyspf, dkimpy and parsedmarc of PyPI, mailauth of npm.
//!
//! `scripts/sender-oracles` brings them; what a registry does not give is left out, and the test says so. `SCRINIUM_SEED` repeats what is
//! made at random, `SCRINIUM_TIMES` makes it more.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use scrinium_sender_authentication::dkim::{BodyDigests, DkimResult, KeyKind, Signer, SigningKey, verify};
use scrinium_sender_authentication::spf::check_sender;
use scrinium_sender_authentication::{
    AggregateReport, Answers, Head, ReportLimits, parse_report, settle, split_message,
};
use serde_json::{Value, json};

use crate::kit::{NOW_SECONDS, Zone, finish, name, request, signed};

/// Tests of the suite that come out differently here, and why.
const SPF_DIFFERENCES: [(&str, &str); 0] = [];

/// A program that answers a line with a line.
struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.input, "{question}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?} to {question}"))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Where the oracles are, or why they are not there.
fn oracles() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/sender-oracles");
    let brought = Command::new(script).stderr(Stdio::inherit()).output().ok()?;
    let folder = PathBuf::from(String::from_utf8(brought.stdout).ok()?.trim());
    folder.is_dir().then_some(folder)
}

fn python() -> Option<(Oracle, PathBuf)> {
    let folder = oracles().map(|folder| folder.join("python")).filter(|folder| folder.is_dir());
    let Some(folder) = folder else {
        scrinium_fault::skip(
            "there are no dkimpy and pyspf; scripts/sender-oracles brings them where PyPI is reached",
        );
        return None;
    };
    let mut command = Command::new("python3");
    command
        .args(["-W", "ignore", "-c", include_str!("oracle/oracle.py")])
        .env("PYTHONPATH", &folder)
        .env("TZ", "UTC");
    Some((Oracle::start(&mut command), folder))
}

fn random() -> StdRng {
    let seed = std::env::var("SCRINIUM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(rand::random);
    println!("SCRINIUM_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

fn times(usual: usize) -> usize {
    let times = std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse::<usize>().ok());
    usual * times.unwrap_or(1)
}

fn spf_result(zone: &Zone, address: &str, sender: &str, helo: &str) -> (String, Option<String>) {
    let request = request(address, sender, helo);
    let mut answers = Answers::default();
    let found = finish(settle(zone, &mut answers, |answers| check_sender(&request, answers)));
    (found.result.to_string(), found.explanation)
}

fn zone_of(records: &Value) -> Zone {
    let mut zone = Zone::default();
    for record in records.as_array().unwrap() {
        let text = |place: usize| record[place].as_str().unwrap();
        let (owner, kind) = (text(0).to_ascii_lowercase(), text(1));
        match kind {
            "PTR" => {
                if let Some(address) = reversed(&owner) {
                    zone.add(&address, "PTR", text(2));
                }
            }
            "A" | "AAAA" | "MX" | "TXT" | "CNAME" | "FAIL" => zone.add(&owner, kind, text(2)),
            _ => {}
        }
    }
    zone
}

/// The address of a name in `in-addr.arpa` or `ip6.arpa`.
fn reversed(owner: &str) -> Option<String> {
    if let Some(octets) = owner.strip_suffix(".in-addr.arpa") {
        return Some(octets.split('.').rev().collect::<Vec<_>>().join("."));
    }
    let digits: String = owner.strip_suffix(".ip6.arpa")?.split('.').rev().collect();
    let groups: Vec<&str> =
        digits.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).unwrap()).collect();
    Some(groups.join(":"))
}

#[test]
fn the_spf_suite_has_its_results() {
    let Some((mut python, folder)) = python() else { return };
    let scenarios = python.ask(&json!({"do": "suite", "file": folder.join("rfc7208-tests.yml")}));
    let mut seen = 0;
    let mut different = Vec::new();
    for scenario in scenarios.as_array().unwrap() {
        let zone = zone_of(&scenario["zone"]);
        for test in scenario["tests"].as_array().unwrap() {
            let text = |key: &str| test[key].as_str().unwrap();
            let (result, explanation) = spf_result(&zone, text("address"), text("sender"), text("helo"));
            let results: Vec<&str> =
                test["results"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let is_known = SPF_DIFFERENCES.iter().any(|(name, _)| *name == text("name"));
            let wanted = test["explanation"].as_str().filter(|wanted| *wanted != "DEFAULT");
            // Letters of an IPv6 address in a name mean the same in either case.
            let explanation = explanation.map(|text| text.to_lowercase());
            let wanted = wanted.map(str::to_lowercase);
            let is_explained = result != "fail" || wanted.is_none() || explanation == wanted;
            if (!results.contains(&result.as_str()) || !is_explained) && !is_known {
                different.push(format!(
                    "{}: {result} {explanation:?} instead of {results:?} {wanted:?}",
                    text("name")
                ));
            }
            seen += 1;
        }
    }
    assert!(seen > 180, "{seen}");
    assert!(different.is_empty(), "{}\n{}", different.len(), different.join("\n"));
}

const SPF_TERMS: [&str; 30] = [
    "a",
    "mx",
    "ptr",
    "all",
    "-all",
    "~all",
    "?all",
    "a:b.example.org",
    "a:b.example.org/24",
    "a/24//64",
    "-mx:example.org/28",
    "ip4:192.0.2.0/25",
    "ip4:192.0.2.1",
    "ip6:2001:db8::/32",
    "include:b.example.org",
    "include:c.example.org",
    "?include:c.example.org",
    "exists:%{i}.x.example.org",
    "exists:%{l1r-}.x.example.org",
    "exists:%{d2}.x.example.org",
    "redirect=b.example.org",
    "redirect=c.example.org",
    "exp=e.example.org",
    "x=y",
    "ip4:192.0.2.300",
    "a:",
    "ip4:192.0.2.0/33",
    "moo",
    "a:%{x}.example.org",
    "include:no.example.org",
];

/// Whether a term asks for the record of this domain.
fn leads_to(term: &str, owner: &str) -> bool {
    let term = term.trim_start_matches(['+', '-', '~', '?']);
    let target = term.strip_prefix("include:").or_else(|| term.strip_prefix("redirect="));
    target == Some(owner)
}

#[test]
fn pyspf_agrees_on_records_made_at_random() {
    let Some((mut python, _)) = python() else { return };
    let mut random = random();
    for _ in 0..times(300) {
        let mut zone = vec![
            json!(["b.example.org", "A", "192.0.2.1"]),
            json!(["example.org", "MX", "b.example.org"]),
            json!(["b.example.org", "AAAA", "2001:db8::1"]),
            json!(["user.x.example.org", "A", "127.0.0.2"]),
            json!(["192.0.2.1.x.example.org", "A", "127.0.0.2"]),
        ];
        for owner in ["example.org", "b.example.org", "c.example.org"] {
            let count = random.random_range(0..5);
            let mut terms: Vec<&str> = (0..count).map(|_| *SPF_TERMS.choose(&mut random).unwrap()).collect();
            // RFC 7208 §6: a modifier that is not known may be there twice. pyspf refuses that.
            if terms.iter().filter(|term| **term == "x=y").count() > 1 {
                terms.retain(|term| *term != "x=y");
            }
            // RFC 7208 §4.6, §6.1: mechanisms are looked at from left to right, and `redirect` where none of them matches. pyspf
            // refuses a record that leads to itself wherever that stands.
            terms.retain(|term| !leads_to(term, owner));
            zone.push(json!([owner, "TXT", format!("v=spf1 {}", terms.join(" "))]));
        }
        let address = *["192.0.2.1", "192.0.2.130", "198.51.100.1", "2001:db8::1", "2001:db9::1"]
            .choose(&mut random)
            .unwrap();
        let (sender, helo) = ("user-x@example.org", "mail.example.org");
        let zone = Value::from(zone);
        let theirs = python.ask(
            &json!({"do": "check_spf", "zone": zone, "address": address, "sender": sender, "helo": helo}),
        );
        let (ours, _) = spf_result(&zone_of(&zone), address, sender, helo);
        assert_eq!(theirs.as_str(), Some(ours.as_str()), "{address} {zone}");
    }
}

/// A message with odd white space in its fields and its body.
fn any_message(random: &mut StdRng) -> String {
    let mut text = |most: usize| {
        let length = random.random_range(0..most);
        let letters = ["a", "B", " ", "  ", "\t", "=", ";", ":", "word", "\r\n ", " \r\n\t"];
        (0..length).map(|_| *letters.choose(random).unwrap()).collect::<String>()
    };
    let mut message = format!(
        "From: a@example.org\r\nSubject:{}x\r\nTo: {}y\r\nX-Other: {}z\r\n\r\n",
        text(9),
        text(9),
        text(9)
    );
    for _ in 0..4 {
        message.push_str(&text(9).replace("\r\n", " "));
        message.push_str(&"\r\n".repeat(text(3).len() % 4));
    }
    message.push_str(if text(9).len() > 4 { "\r\n" } else { "end\r\n" });
    message
}

fn rsa_pkcs8() -> Vec<u8> {
    STANDARD.decode(include_str!("rsa-2048.pkcs8.txt").replace('\n', "")).unwrap()
}

/// Signers of both kinds, and what dkimpy signs with.
fn signers() -> [(Signer, &'static str, String); 2] {
    let rsa = rsa_pkcs8();
    let ed25519 = SigningKey::make(KeyKind::Ed25519).unwrap();
    let signer = |kind, pkcs8: &[u8]| Signer {
        domain: name("example.org"),
        selector: if kind == KeyKind::Rsa { "r1" } else { "e1" }.to_owned(),
        key: SigningKey::from_pkcs8(kind, pkcs8).unwrap(),
        expires_after_seconds: None,
    };
    // PKCS #8 is a frame of 26 and of 16 bytes around the two keys.
    let pem = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        STANDARD.encode(&rsa[26..])
    );
    [
        (signer(KeyKind::Rsa, &rsa), "rsa-sha256", pem),
        (signer(KeyKind::Ed25519, &ed25519), "ed25519-sha256", STANDARD.encode(&ed25519[16..48])),
    ]
}

#[test]
fn dkimpy_and_we_believe_the_same_signatures() {
    let Some((mut python, _)) = python() else { return };
    let mut random = random();
    let signers = signers();
    let mut zone = Zone::default();
    let mut keys = serde_json::Map::new();
    for (signer, ..) in &signers {
        let at = format!("{}._domainkey.example.org", signer.selector);
        zone.add(&at, "TXT", &signer.key.record());
        keys.insert(at, json!(signer.key.record()));
    }
    for round in 0..times(60) {
        let message = any_message(&mut random);
        let (signer, algorithm, key) = signers.choose(&mut random).unwrap();
        let ours = signed(signer, &message);
        let forms = [
            ["relaxed", "simple"].choose(&mut random).unwrap(),
            ["relaxed", "simple"].choose(&mut random).unwrap(),
        ];
        let theirs = python.ask(&json!({
            "do": "sign", "message": STANDARD.encode(&message), "forms": forms, "algorithm": algorithm,
            "selector": signer.selector, "domain": "example.org", "key": key,
        }));
        let theirs = String::from_utf8(STANDARD.decode(theirs.as_str().unwrap()).unwrap()).unwrap();
        for whole in [ours, theirs] {
            // A third of them is changed by one letter somewhere behind the signature's beginning.
            let mut bytes = whole.into_bytes();
            if round % 3 == 0 {
                let place = random.random_range(20..bytes.len());
                if bytes[place].is_ascii_alphanumeric() {
                    bytes[place] = b'q';
                }
            }
            let (head, body) = split_message(&bytes);
            let (head, digests) = (Head::parse(head), BodyDigests::of(body));
            let mut answers = Answers::default();
            let found =
                finish(settle(&zone, &mut answers, |answers| verify(&head, &digests, NOW_SECONDS, answers)));
            let passes: Vec<bool> = found.iter().map(|one| one.result == DkimResult::Pass).collect();
            let question = json!({"do": "verify", "message": STANDARD.encode(&bytes), "signatures": passes.len(), "keys": keys});
            assert_eq!(
                python.ask(&question),
                json!(passes),
                "{:?} {found:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}

#[test]
fn mailauth_agrees_on_policies_made_at_random() {
    let folder = oracles().map(|folder| folder.join("node")).filter(|folder| folder.is_dir());
    let Some(folder) = folder else {
        scrinium_fault::skip("there is no mailauth; scripts/sender-oracles brings it where npm is reached");
        return;
    };
    let mut command = Command::new("node");
    let script = folder.join("oracle.mjs");
    std::fs::write(&script, include_str!("oracle/oracle.mjs")).unwrap();
    command.arg(script).arg(folder.join("package.json"));
    let mut mailauth = Oracle::start(&mut command);
    let mut random = random();
    let names = [
        "example",
        "b.example",
        "a.b.example",
        "x.a.b.example",
        "y.b.example",
        "1.2.3.4.5.6.7.a.b.example",
        "other.test",
    ];
    for _ in 0..times(400) {
        let mut zone = Vec::new();
        for owner in names {
            if random.random_bool(0.5) {
                let tags = [
                    "p=reject",
                    "sp=quarantine",
                    "np=none",
                    "np=reject",
                    "psd=y",
                    "psd=n",
                    "t=y",
                    "adkim=s",
                    "aspf=s",
                    "p=none",
                    "sp=x",
                    "rua=mailto:a@b.example",
                    "x=y",
                ];
                let count = random.random_range(0..4);
                let mut chosen: Vec<&str> = (0..count).map(|_| *tags.choose(&mut random).unwrap()).collect();
                // What a tag means that is there twice is not defined.
                chosen.sort_unstable();
                chosen.dedup_by_key(|tag| tag.split('=').next().unwrap_or_default().to_owned());
                zone.push(json!([
                    format!("_dmarc.{owner}"),
                    "TXT",
                    format!("v=DMARC1; {}", chosen.join("; "))
                ]));
            }
            if random.random_bool(0.3) {
                zone.push(json!([owner, "A", "192.0.2.1"]));
            }
        }
        let author = *names.choose(&mut random).unwrap();
        let mut some =
            || -> Vec<&str> { names.iter().copied().filter(|_| random.random_bool(0.2)).take(1).collect() };
        let (spf, dkim) = (some(), some());
        let theirs = mailauth.ask(&json!({"author": author, "spf": spf, "dkim": dkim, "zone": zone}));
        let ours = our_policy(&zone_of(&Value::from(zone.clone())), author, &spf, &dkim);
        let theirs =
            (theirs["result"].as_str().unwrap().to_owned(), theirs["policy"].as_str().map(ToOwned::to_owned));
        assert_eq!(ours, theirs, "{author} spf {spf:?} dkim {dkim:?} {zone:?}");
    }
}

/// Our verdict where SPF and signatures have passed for these domains.
fn our_policy(zone: &Zone, author: &str, spf: &[&str], dkim: &[&str]) -> (String, Option<String>) {
    use scrinium_sender_authentication::dkim::DkimOutcome;
    use scrinium_sender_authentication::dmarc::{DmarcEvidence, evaluate};
    use scrinium_sender_authentication::spf::{SpfOutcome, SpfResult};
    let head = format!("From: a@{author}\r\n");
    let authors = scrinium_sender_authentication::Authors::of(&Head::parse(head.as_bytes()));
    let spf = spf.first().map(|domain| SpfOutcome {
        result: SpfResult::Pass,
        domain: Some(name(domain)),
        is_greeting: false,
        fault: None,
        explanation: None,
    });
    let dkim: Vec<DkimOutcome> = dkim
        .iter()
        .map(|domain| DkimOutcome {
            result: DkimResult::Pass,
            fault: None,
            domain: Some(name(domain)),
            selector: None,
            algorithm: None,
            signature_start: None,
        })
        .collect();
    let evidence = DmarcEvidence { authors: &authors, spf: spf.as_ref(), dkim: &dkim };
    let mut answers = Answers::default();
    let found = finish(settle(zone, &mut answers, |answers| evaluate(&evidence, answers)));
    (found.result.to_string(), found.policy.map(|policy| policy.to_string()))
}

/// A report of some receiver, in the words of RFC 7489 or RFC 9990.
fn any_report(random: &mut StdRng) -> String {
    let pick = |random: &mut StdRng, of: &[&str]| (*of.choose(random).unwrap()).to_owned();
    let word = |random: &mut StdRng| pick(random, &["pass", "fail"]);
    let mut rows = String::new();
    for _ in 0..random.random_range(1..6) {
        let source = pick(random, &["192.0.2.7", "198.51.100.200", "2001:db8::7"]);
        let disposition = pick(random, &["none", "quarantine", "reject"]);
        let (dkim, spf) = (word(random), word(random));
        let reasons: String = (0..random.random_range(0..3))
            .map(|_| {
                let kind = pick(random, &["forwarded", "mailing_list", "local_policy", "other"]);
                let comment =
                    pick(random, &["<comment>arc=pass &amp; more</comment>", "<comment></comment>", ""]);
                format!("<reason><type>{kind}</type>{comment}</reason>")
            })
            .collect();
        let signatures: String = (0..random.random_range(0..3))
            .map(|number| {
                let result = pick(random, &["pass", "fail", "none", "temperror", "permerror", "neutral"]);
                format!(
                    "<dkim><domain>d{number}.example</domain><selector>s{number}</selector><result>{result}</result></dkim>"
                )
            })
            .collect();
        let result = pick(random, &["pass", "fail", "softfail", "neutral", "none", "temperror"]);
        let count = random.random_range(1..2_000_000);
        rows += &format!(
            "<record><row><source_ip>{source}</source_ip><count>{count}</count><policy_evaluated>\
             <disposition>{disposition}</disposition><dkim>{dkim}</dkim><spf>{spf}</spf>{reasons}</policy_evaluated></row>\
             <identifiers><header_from>a.example</header_from></identifiers><auth_results>{signatures}\
             <spf><domain>mail.example</domain><scope>mfrom</scope><result>{result}</result></spf></auth_results></record>"
        );
    }
    let begin = random.random_range(1_600_000_000_u64..1_900_000_000);
    let root = pick(random, &["<feedback>", "<feedback xmlns=\"urn:ietf:params:xml:ns:dmarc-2.0\">"]);
    // One word would be taken for a domain, whose registered part parsedmarc tells.
    let organization = pick(random, &["Receiver &amp; Sons", "Google Inc.", "\u{dc}bersee GmbH"]);
    let (policy, sp) = (pick(random, &["none", "quarantine", "reject"]), pick(random, &["none", "reject"]));
    let (adkim, aspf) = (pick(random, &["r", "s"]), pick(random, &["r", "s"]));
    let error = pick(random, &["", "<error>one</error>"]);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}<version>1.0</version><report_metadata>\
         <org_name>{organization}</org_name><email>r@receiver.example</email><report_id>{begin}.7</report_id>\
         <date_range><begin>{begin}</begin><end>{}</end></date_range>{error}</report_metadata><policy_published>\
         <domain>a.example</domain><adkim>{adkim}</adkim><aspf>{aspf}</aspf><p>{policy}</p><sp>{sp}</sp>\
         <pct>100</pct></policy_published>{rows}</feedback>",
        begin + 86_399
    )
}

/// A report as the oracle tells it.
fn told(report: &AggregateReport) -> Value {
    let row = |row: &scrinium_sender_authentication::ReportRow| {
        let dkim: Vec<[&String; 3]> =
            row.dkim.iter().map(|dkim| [&dkim.domain, &dkim.detail, &dkim.result]).collect();
        let spf: Vec<[&String; 2]> = row.spf.iter().map(|spf| [&spf.domain, &spf.result]).collect();
        json!([
            row.source.map(|source| source.to_string()),
            row.count,
            row.disposition,
            row.is_dkim_aligned,
            row.is_spf_aligned,
            row.header_from,
            row.overrides,
            dkim,
            spf
        ])
    };
    let policy = &report.policy;
    json!({
        "organization": report.organization, "id": report.report_id, "begin": report.begin_seconds,
        "end": report.end_seconds, "errors": report.errors, "domain": policy.domain, "policy": policy.policy,
        "subdomains": policy.subdomain_policy, "adkim": policy.dkim_alignment, "aspf": policy.spf_alignment,
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

#[test]
fn parsedmarc_reads_the_same_out_of_reports_made_at_random() {
    let Some((mut oracle, folder)) = python() else { return };
    if !folder.join("parsedmarc").is_dir() {
        return scrinium_fault::skip("there is no parsedmarc; scripts/sender-oracles brings it");
    }
    let mut random = random();
    for _ in 0..times(40) {
        let xml = any_report(&mut random);
        let theirs = oracle.ask(&json!({"do": "report", "xml": xml}));
        let ours = parse_report(xml.as_bytes(), &ReportLimits::default()).unwrap();
        assert_eq!(told(&ours), theirs, "{xml}");
    }
}
