//! Signing in with a provider of OpenID Connect: npm's oidc-provider, in a process of Node. Skipped where it cannot be fetched.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::{ADA, SOON, ask, change, cookie, name_of};
use crate::common::{Answer, Server, read_answer, small_with, start_with};

/// Where people sign in; the provider sends them back to it.
const SITE: &str = "http://localhost:5984";
const SECRET: &str = "what the provider gave this server";

/// The provider's process.
struct Process {
    node: Child,
    /// It ends with it.
    _input: ChildStdin,
    _output: BufReader<ChildStdout>,
    issuer: String,
}

impl Process {
    /// Starts it below `folder`; a word why not, where this machine cannot.
    fn start(folder: &Path) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/provider");
        for file in ["provider.mjs", "package.json"] {
            std::fs::copy(source.join(file), folder.join(file)).unwrap();
        }
        let install =
            ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline", "--silent"];
        let installed = Command::new("npm").args(install).current_dir(folder).output();
        let installed = installed.map_err(|error| format!("npm cannot be run: {error}"))?;
        if !installed.status.success() {
            return Err(format!(
                "npm cannot fetch oidc-provider: {}",
                String::from_utf8_lossy(&installed.stderr)
            ));
        }
        let mut node = Command::new("node")
            .args(["provider.mjs", &format!("{SITE}/_session/provider/callback"), SECRET])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("node cannot be run: {error}"))?;
        let input = node.stdin.take().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(node.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let issuer = line.trim().to_owned();
        if issuer.is_empty() {
            return Err(format!("node ended: {:?}", node.wait()));
        }
        Ok(Self { node, _input: input, _output: output, issuer })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.node.kill());
        drop(self.node.wait());
    }
}

/// A browser, as far as this needs one: it keeps cookies and follows redirections.
struct Browser<'s> {
    server: &'s Server,
    cookies: BTreeMap<(String, String), String>,
}

impl<'s> Browser<'s> {
    /// One of somebody who claims to be `who` at the provider.
    fn of(server: &'s Server, provider: &Process, who: &str) -> Self {
        let host = provider.issuer.strip_prefix("http://").unwrap().to_owned();
        let cookies = if who.is_empty() { None } else { Some(((host, "who".to_owned()), who.to_owned())) };
        Self { server, cookies: cookies.into_iter().collect() }
    }

    fn get(&mut self, url: &str) -> Answer {
        let rest = url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        let site = SITE.strip_prefix("http://").unwrap();
        let address = if host == site { self.server.address().to_string() } else { host.to_owned() };
        let kept = self.cookies.iter().filter(|((of, _), _)| of == host);
        let kept: Vec<String> = kept.map(|((_, name), value)| format!("{name}={value}")).collect();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\nConnection: close\r\n\r\n",
            kept.join("; ")
        );
        stream.write_all(head.as_bytes()).unwrap();
        let answer = read_answer(&mut BufReader::new(stream)).unwrap();
        for (_, set) in answer.headers.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert((host.to_owned(), name.to_owned()), value.to_owned());
        }
        answer
    }

    /// Begins to sign in, and gives the address at which the provider sends the browser back.
    fn sent_back(&mut self, next: &str) -> String {
        let mut answer = self.get(&format!("{SITE}/_session/provider?next={next}"));
        let mut at = SITE.to_owned();
        for _ in 0..10 {
            assert!([302, 303].contains(&answer.status), "{at}: {} {}", answer.status, answer.text());
            let location = answer.header("location").unwrap().to_owned();
            let host = at.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
            at = if location.starts_with('/') { format!("{host}{location}") } else { location };
            if at.starts_with(&format!("{SITE}/_session/provider/callback?")) {
                return at;
            }
            answer = self.get(&at);
        }
        panic!("the provider sends the browser from here to there");
    }

    /// Signs in; what this server says.
    fn sign_in(&mut self) -> Answer {
        let back = self.sent_back("/_utils/");
        self.get(&back)
    }

    /// Whom this server takes the browser for.
    fn name(&self) -> Value {
        let site = SITE.strip_prefix("http://").unwrap();
        let session = self.cookies.get(&(site.to_owned(), "AuthSession".to_owned()));
        session.map_or(Value::Null, |session| {
            name_of(self.server, &format!("Cookie: AuthSession={session}\r\n"))
        })
    }
}

fn server_with(folder: &Path, provider: &Process, client: &str, secret_file: &str) -> Server {
    let settings = small_with([
        ("SCRINIUM_SIGN_IN__URL", SITE.to_owned()),
        ("SCRINIUM_OIDC__ISSUER", provider.issuer.clone()),
        ("SCRINIUM_OIDC__CLIENT_ID", client.to_owned()),
        ("SCRINIUM_OIDC__CLIENT_SECRET_FILE", secret_file.to_owned()),
    ]);
    start_with(folder, &settings)
}

#[test]
fn people_sign_in_with_a_provider_and_nobody_is_taken_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let provider = match Process::start(folder.path()) {
        Ok(provider) => provider,
        Err(why) => return scrinium_fault::skip(why),
    };
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("oidc.secret"), format!("{SECRET}\n")).unwrap();
    let mut server = server_with(folder.path(), &provider, "scrinium", "oidc.secret");
    change(&server, "ada", &json!({"password": ADA, "InternetAddress": "ada@acme.example"}));
    change(&server, "bob", &json!({}));
    change(&server, "mallory", &json!({"InternetAddress": "mallory@acme.example"}));
    let browser = |who: &str| Browser::of(&server, &provider, who);

    // By the address that the provider has verified.
    let mut ada = browser("ada");
    ada.sent_back("/");
    let of_another = browser("ada").sent_back("/");
    ada.get(&of_another).expect_error(403, "forbidden");
    assert_eq!(ada.name(), Value::Null, "it came back to a sign-in of another browser");
    let back = ada.sent_back("/_utils/%23/memos");
    let kept = ada.cookies.clone();
    let page = ada.get(&back).expect(200);
    assert!(page.text().contains("/_utils/#/memos"), "{}", page.text());
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(ada.name(), "ada");
    // It is good for once, and for the browser that has begun.
    let mut thief = browser("");
    thief.get(&back).expect_error(403, "forbidden");
    thief.cookies = kept;
    thief.get(&back).expect_error(403, "forbidden");
    assert_eq!((thief.name(), ada.name()), (Value::Null, json!("ada")));
    let elsewhere = ada.sent_back("//evil.example/");
    assert!(!ada.get(&elsewhere).expect(200).text().contains("evil"));

    // An address that nobody has verified names nobody, and who has none must be linked.
    browser("mallory").sign_in().expect_error(403, "forbidden");
    let mut bob = browser("bob");
    bob.sign_in().expect_error(403, "forbidden");
    let own = cookie(&super::with_password(&server, "ada", ADA).expect(200));
    ask(&server, &own, "PUT", "/_credentials/links/bob", Some(&json!({}))).expect_error(403, "forbidden");
    let mut client = server.client();
    client.json("PUT", "/_credentials/links/bob?person=bob", &json!({})).unwrap().expect(200);
    client.json("PUT", "/_credentials/links/bob?person=ada", &json!({})).unwrap().expect(400);
    bob.sign_in().expect(200);
    assert_eq!(bob.name(), "bob");
    client.ask("DELETE", "/_credentials/links/bob?person=bob", "application/json", b"").unwrap().expect(200);
    browser("bob").sign_in().expect_error(403, "forbidden");

    // Who does not agree at the provider, and whose second step is asked for here.
    let refused = browser("").sign_in();
    refused.expect_error(403, "forbidden");
    assert!(refused.text().contains("access_denied"), "{}", refused.text());
    change(&server, "ada", &json!({"SecondFactor": "required"}));
    let mut ada = browser("ada");
    ada.sign_in().expect_error(401, "second_step_required");
    assert_eq!(ada.name(), Value::Null);

    // A client without a secret has the proof of its key (PKCE) alone.
    server.kill();
    let server = server_with(folder.path(), &provider, "public", "");
    change(&server, "ada", &json!({"SecondFactor": null}));
    let mut ada = Browser::of(&server, &provider, "ada");
    ada.sign_in().expect(200);
    assert_eq!(ada.name(), "ada");
}
