//! App passwords, authenticators, passkeys and tokens of services, at a server as a process.

mod authenticator;
mod provider;
mod sign_in;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::BASE32_NOPAD;
use scrinium_credentials::token::sign_hmac;
use scrinium_credentials::{STEP_S, TotpHash, code_of_step};
use serde_json::{Value, json};

use crate::common::{Answer, SMALL, Server, answer, beside, read_answer, small_with, start_with};
use authenticator::Device;
use provider::Provider;

/// However loaded the machine is.
const SOON: Duration = Duration::from_secs(60);

const ADA: &str = "the password of ada";

/// Asks on a connection of its own; `who` is a header that says who asks, or nothing.
fn ask(server: &Server, who: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\n{who}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
    read_answer(&mut BufReader::new(stream)).unwrap()
}

fn basic(name: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{name}:{password}")))
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn cookie(answer: &Answer) -> String {
    format!("Cookie: {}\r\n", answer.header("set-cookie").unwrap().split(';').next().unwrap())
}

fn sign_in(server: &Server, shown: &Value) -> Answer {
    ask(server, "", "POST", "/_session", Some(shown))
}

fn with_password(server: &Server, name: &str, password: &str) -> Answer {
    sign_in(server, &json!({"name": name, "password": password}))
}

/// The name of who asks so, or nothing.
fn name_of(server: &Server, who: &str) -> Value {
    let shown = ask(server, who, "GET", "/_session", None);
    if shown.status == 200 { shown.value()["userCtx"]["name"].clone() } else { Value::Null }
}

fn change(server: &Server, name: &str, fields: &Value) {
    let mut client = server.client();
    let path = format!("/directory/person:{name}");
    let present = client.get(&path).unwrap();
    let mut person = if present.status == 200 {
        present.value()
    } else {
        json!({"Form": "Person", "FullName": [name], "ShortName": name})
    };
    person.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    client.json("PUT", &path, &person).unwrap().expect(201);
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The code that an authenticator shows now, or `steps` later.
fn code(secret: &str, steps: u64) -> String {
    let secret = BASE32_NOPAD.decode(secret.as_bytes()).unwrap();
    code_of_step(&secret, now_s() / STEP_S + steps, 6, TotpHash::Sha1)
}

fn wait_for(mut look: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !look() {
        assert!(begun.elapsed() < SOON, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn app_password(server: &Server, who: &str, name: &str, protocols: &[&str]) -> (String, String) {
    let asked = json!({"name": name, "protocols": protocols});
    let made = ask(server, who, "POST", "/_credentials/app_passwords", Some(&asked)).expect(200).value();
    let text = |member: &str| made[member].as_str().unwrap().to_owned();
    (text("id"), text("password"))
}

#[test]
fn app_passwords_are_made_listed_kept_to_their_protocols_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    change(&server, "ada", &json!({"password": ADA}));
    change(&server, "bob", &json!({"password": "the password of bob"}));
    let own = cookie(&with_password(&server, "ada", ADA).expect(200));
    let (mail_id, mail) = app_password(&server, &own, "phone", &["mail"]);
    let (id, text) = app_password(&server, &own, "sync", &["http"]);
    assert!(mail != text && mail_id != id);
    for protocols in [json!([]), json!(["browser"]), json!(["telnet"])] {
        let asked = json!({"name": "x", "protocols": protocols});
        ask(&server, &own, "POST", "/_credentials/app_passwords", Some(&asked)).expect(400);
    }

    // By what it is for, and by nothing else.
    let program = basic("ada", &text);
    assert_eq!(name_of(&server, &program), "ada");
    ask(&server, &basic("ada", &mail), "GET", "/_session", None).expect_error(403, "forbidden");
    ask(&server, &basic("bob", &text), "GET", "/_session", None).expect_error(401, "unauthorized");
    let listed = || ask(&server, &own, "GET", "/_credentials", None).expect(200).value();
    let used = |shown: &Value, id: &str| {
        let all = shown["app_passwords"].as_array().unwrap();
        all.iter().find(|app| app["id"] == *id).unwrap()["used_ms"].clone()
    };
    wait_for(|| used(&listed(), &id).is_u64(), "the last use");
    assert_eq!(used(&listed(), &mail_id), Value::Null);
    assert!(!listed().to_string().contains(&text));

    // A program's session does what the app password does, and no app password manages credentials.
    let session = cookie(&with_password(&server, "ada", &text).expect(200));
    assert_eq!(name_of(&server, &session), "ada");
    for who in [&session, &program] {
        ask(&server, who, "GET", "/_credentials", None).expect_error(403, "forbidden");
        let asked = json!({"name": "more", "protocols": ["http"]});
        ask(&server, who, "POST", "/_credentials/app_passwords", Some(&asked)).expect(403);
    }
    // Nor does anybody but an administrator manage another's.
    let bob = basic("bob", "the password of bob");
    ask(&server, &bob, "GET", "/_credentials?person=ada", None).expect(403);
    ask(&server, &bob, "DELETE", &format!("/_credentials/app_passwords/{id}?person=ada"), None).expect(403);
    ask(&server, &bob, "DELETE", &format!("/_credentials/app_passwords/{id}"), None).expect(404);
    let document = server.client().get("/directory/person:ada").unwrap().text();
    assert!(!document.contains("stored_key") && !document.contains(&id), "{document}");

    server.kill();
    server = Server::start(folder.path(), &SMALL);
    assert_eq!(name_of(&server, &program), "ada");
    ask(&server, &own, "PUT", &format!("/_credentials/app_passwords/{id}"), Some(&json!({"name": "new"})))
        .expect(200);
    let mut client = server.client();
    let shown = client.get("/_credentials?person=ada").unwrap().expect(200).value();
    assert!(shown["app_passwords"].as_array().unwrap().iter().any(|app| app["name"] == "new"), "{shown}");
    let path = format!("/_credentials/app_passwords/{id}?person=ada");
    client.ask("DELETE", &path, "application/json", b"").unwrap().expect(200);
    ask(&server, &program, "GET", "/_session", None).expect_error(401, "unauthorized");
    assert_eq!(name_of(&server, &session), Value::Null);
    assert_eq!(name_of(&server, &own), "ada", "her own session goes on");
}

#[test]
fn somebody_sees_where_they_are_signed_in_and_signs_out_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &SMALL);
    change(&server, "ada", &json!({"password": ADA}));
    let began = || cookie(&with_password(&server, "ada", ADA).expect(200));
    let (own, phone, tablet, unseen) = (began(), began(), began(), began());
    let program = format!("{phone}User-Agent: Phone/7\r\n");
    assert_eq!([name_of(&server, &program), name_of(&server, &tablet)], ["ada", "ada"]);
    let listed = |who: &str| {
        let shown = ask(&server, who, "GET", "/_credentials/sessions", None).expect(200).value();
        shown["sessions"].as_array().unwrap().clone()
    };
    let all = listed(&own);
    assert_eq!(all.len(), 3, "the one that was not used is not known: {all:?}");
    assert_eq!(all.iter().filter(|session| session["current"] == true).count(), 1);
    let there = all.iter().find(|session| session["agent"] == "Phone/7").unwrap();
    assert_eq!((&there["address"], &there["current"]), (&json!("127.0.0.1"), &json!(false)));
    let path = format!("/_credentials/sessions/{}", there["id"].as_str().unwrap());
    // Nobody else ends it, and no program.
    ask(&server, &basic("admin", crate::common::PASSWORD), "DELETE", &path, None).expect(404);
    change(&server, "bob", &json!({"password": "the password of bob"}));
    ask(&server, &basic("bob", "the password of bob"), "DELETE", &path, None).expect(404);
    let (_, text) = app_password(&server, &own, "sync", &["http"]);
    ask(&server, &basic("ada", &text), "GET", "/_credentials/sessions", None).expect(403);
    ask(&server, &own, "DELETE", &path, None).expect(200);
    ask(&server, &own, "DELETE", &path, None).expect(404);
    assert_eq!([name_of(&server, &phone), name_of(&server, &tablet)], [Value::Null, json!("ada")]);
    assert_eq!(listed(&own).len(), 2);

    // All others end, also those that were not seen; the one that asks goes on as another one.
    let ended = ask(&server, &own, "DELETE", "/_credentials/sessions", None).expect(200);
    assert_eq!(ended.value()["ended"], 1);
    let fresh = cookie(&ended);
    let over = |server: &Server| [&own, &phone, &tablet, &unseen].map(|who| name_of(server, who));
    assert_eq!(over(&server), [Value::Null, Value::Null, Value::Null, Value::Null]);
    assert_eq!(name_of(&server, &fresh), "ada");
    server.kill();
    server = Server::start(folder.path(), &SMALL);
    assert_eq!(over(&server), [Value::Null, Value::Null, Value::Null, Value::Null]);
    assert_eq!(name_of(&server, &fresh), "ada");
    assert_eq!(name_of(&server, &cookie(&with_password(&server, "ada", ADA).expect(200))), "ada");
}

#[test]
fn with_a_second_factor_a_password_begins_a_sign_in_and_opens_nothing_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    change(&server, "ada", &json!({"password": ADA}));
    let before = cookie(&with_password(&server, "ada", ADA).expect(200));
    let begun = ask(&server, &before, "POST", "/_credentials/totp", None).expect(200).value();
    let secret = begun["secret"].as_str().unwrap();
    assert!(begun["uri"].as_str().unwrap().starts_with("otpauth://totp/"), "{begun}");
    // Nothing is on until a code was shown.
    with_password(&server, "ada", ADA).expect(200);
    let confirm = |code: &str| {
        let shown = json!({"begun": begun["begun"], "code": code});
        ask(&server, &before, "PUT", "/_credentials/totp", Some(&shown))
    };
    confirm("000000000").expect(401);
    let on = confirm(&code(secret, 0)).expect(200);
    let recovery = on.value()["recovery_codes"][0].as_str().unwrap().to_owned();
    let own = cookie(&on);
    assert_eq!(name_of(&server, &own), "ada");
    assert_eq!(name_of(&server, &before), Value::Null, "sessions from before are over");

    // By Basic an app password alone is enough.
    let (_, text) = app_password(&server, &own, "sync", &["http"]);
    ask(&server, &basic("ada", ADA), "GET", "/_session", None).expect_error(401, "unauthorized");
    assert_eq!(name_of(&server, &basic("ada", &text)), "ada");
    let first = with_password(&server, "ada", ADA).expect(401);
    assert_eq!(first.header("set-cookie"), None);
    let first = first.value();
    assert_eq!((&first["error"], &first["second_steps"]), (&json!("second_step_required"), &json!(["code"])));
    let second = |code: &str| sign_in(&server, &json!({"step": first["step"], "code": code}));
    second("123").expect(401);
    assert_eq!(name_of(&server, &cookie(&second(&code(secret, 1)).expect(200))), "ada");
    second(&code(secret, 1)).expect(401);
    second(&recovery).expect(200);
    second(&recovery).expect(401);
    sign_in(&server, &json!({"step": "AAAA", "code": code(secret, 1)})).expect(403);

    // Who must have one and has none sets it up with nothing but the first step.
    change(&server, "bob", &json!({"password": "the password of bob", "SecondFactor": "required"}));
    let first = with_password(&server, "bob", "the password of bob").expect(401).value();
    assert_eq!(first["second_steps"], json!(["set_up"]));
    let step = json!({"step": first["step"]});
    let begun = ask(&server, "", "POST", "/_session/totp", Some(&step)).expect(200).value();
    let code = code(begun["secret"].as_str().unwrap(), 0);
    let shown = json!({"step": first["step"], "begun": begun["begun"], "code": code});
    let done = ask(&server, "", "PUT", "/_session/totp", Some(&shown)).expect(200);
    assert_eq!(name_of(&server, &cookie(&done)), "bob");
    // Once: who has the step again has nothing to set up any more.
    ask(&server, "", "POST", "/_session/totp", Some(&step)).expect(403);
    ask(&server, "", "PUT", "/_session/totp", Some(&shown)).expect(403);
}

#[test]
fn a_passkey_signs_in_from_its_own_site_and_once_for_each_question() {
    let folder = tempfile::tempdir().unwrap();
    let site = "http://localhost:5984";
    let settings = small_with([("SCRINIUM_SIGN_IN__URL", site.to_owned())]);
    let server = start_with(folder.path(), &settings);
    change(&server, "ada", &json!({"password": ADA}));
    let own = cookie(&with_password(&server, "ada", ADA).expect(200));
    let empty = json!({});
    let options =
        ask(&server, &own, "POST", "/_credentials/passkey_options", Some(&empty)).expect(200).value();
    assert_eq!(options["publicKey"]["rp"]["id"], "localhost", "{options}");
    let mut device = Device::new("localhost", &options["publicKey"]);
    let add = |passkey: Value| {
        let shown = json!({"challenge": options["challenge"], "name": "key", "passkey": passkey});
        ask(&server, &own, "POST", "/_credentials/passkeys", Some(&shown))
    };
    add(device.register("https://localhost.example", &options["publicKey"])).expect(400);
    add(device.register(site, &options["publicKey"])).expect(200);
    assert_ne!(add(device.register(site, &options["publicKey"])).status, 200, "the question was answered");

    let question = || ask(&server, "", "POST", "/_session/passkey_options", Some(&empty)).expect(200).value();
    let asked = question();
    let signed = device.sign(site, &asked["publicKey"]);
    let shown = json!({"challenge": asked["challenge"], "passkey": signed});
    let answer = sign_in(&server, &shown).expect(200);
    assert_eq!(answer.value()["name"], "ada");
    assert_eq!(name_of(&server, &cookie(&answer)), "ada");
    sign_in(&server, &shown).expect(401);
    let asked = question();
    for passkey in [
        device.sign("https://localhost.example", &asked["publicKey"]),
        device.sign(site, &question()["publicKey"]),
        json!({"rawId": 5}),
        json!("x"),
    ] {
        sign_in(&server, &json!({"challenge": asked["challenge"], "passkey": passkey})).expect(401);
    }

    let shown = ask(&server, &own, "GET", "/_credentials", None).expect(200).value();
    let id = shown["passkeys"][0]["id"].as_str().unwrap();
    ask(&server, &own, "DELETE", &format!("/_credentials/passkeys/{id}"), None).expect(200);
    let asked = question();
    let signed = device.sign(site, &asked["publicKey"]);
    sign_in(&server, &json!({"challenge": asked["challenge"], "passkey": signed})).expect(401);
}

#[test]
fn tokens_of_services_are_verified_by_the_keys_of_the_file() {
    const SECRET: &[u8] = b"a secret of thirty-two bytes, or more";
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("jwt.keys"), format!("hmac:_default = {}\n", STANDARD.encode(SECRET))).unwrap();
    let settings = small_with([("SCRINIUM_JWT_KEYS__FILE", "jwt.keys".to_owned())]);
    let server = start_with(folder.path(), &settings);
    change(&server, "ada", &json!({"password": ADA}));
    let claims = |name: &str, ends_s: u64| json!({"sub": name, "exp": ends_s, "_couchdb.roles": ["editor"]});
    let good = sign_hmac(SECRET, None, &claims("service", now_s() + 600));
    let shown = ask(&server, &bearer(&good), "GET", "/_session", None).expect(200).value();
    assert_eq!(shown["userCtx"], json!({"name": "service", "roles": ["editor"]}));
    let of_ada = bearer(&sign_hmac(SECRET, None, &claims("ada", now_s() + 600)));
    assert_eq!(name_of(&server, &of_ada), "ada");
    // A token lets a program work, and manages nothing.
    assert_ne!(ask(&server, &of_ada, "GET", "/_credentials", None).status, 200);
    let (head, rest) = good.split_once('.').unwrap();
    let none = format!("{}.{rest}", data_encoding::BASE64URL_NOPAD.encode(b"{\"alg\":\"none\"}"));
    for wrong in [
        sign_hmac(b"another secret of thirty-two bytes or more", None, &claims("ada", now_s() + 600)),
        sign_hmac(SECRET, None, &claims("ada", now_s() - 600)),
        sign_hmac(SECRET, None, &json!({"sub": "ada"})),
        sign_hmac(SECRET, Some("other"), &claims("ada", now_s() + 600)),
        none,
        format!("{head}.{rest}x"),
        "x".to_owned(),
    ] {
        ask(&server, &bearer(&wrong), "GET", "/_session", None).expect_error(401, "unauthorized");
    }
    change(&server, "ada", &json!({"Disabled": true}));
    ask(&server, &of_ada, "GET", "/_session", None).expect_error(403, "forbidden");
}

/// What the submission port answers in the end to Ada, who shows a token.
fn submitted(server: &Server, token: &str) -> String {
    let messages = server.messages();
    let line = messages.lines().find_map(|line| line.split_once("url=submission://127.0.0.1:")).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", line.1.trim().parse::<u16>().unwrap())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut last = || loop {
        let line = lines.next().unwrap().unwrap();
        if line.as_bytes().get(3) != Some(&b'-') {
            return line;
        }
    };
    assert!(last().starts_with("220"));
    let shown = STANDARD.encode(format!("user=ada\u{1}auth=Bearer {token}\u{1}\u{1}"));
    let mut reply = String::new();
    for command in ["EHLO home.example".to_owned(), format!("AUTH XOAUTH2 {shown}")] {
        stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        reply = last();
    }
    if reply.starts_with("334") {
        // A refusal is explained first, and the client answers with nothing.
        stream.write_all(b"\r\n").unwrap();
        reply = last();
    }
    reply
}

#[test]
fn a_trusted_proxy_says_who_asks_and_nobody_else_does() {
    const SECRET: &str = "a secret of thirty-two bytes, or more";
    // printf ada | openssl dgst -sha256 -hmac 'a secret of thirty-two bytes, or more'
    const ADA: &str = "260d9a2a149a65e66faf23c1167c2b2c040f46d30fd5abfbe717532be0fe9991";
    for trusted in ["127.0.0.1", "192.0.2.1"] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("proxy.secret"), format!("{SECRET}\n")).unwrap();
        let settings = small_with([
            ("SCRINIUM_PROXY_AUTH__SECRET_FILE", "proxy.secret".to_owned()),
            ("SCRINIUM_HTTP__TRUSTED_PROXIES", trusted.to_owned()),
        ]);
        let server = start_with(folder.path(), &settings);
        change(&server, "ada", &json!({"password": "a long password"}));
        let asked = |name: &str, roles: &str, token: &str| {
            let headers = format!(
                "X-Auth-CouchDB-UserName: {name}\r\nX-Auth-CouchDB-Roles: {roles}\r\nX-Auth-CouchDB-Token: {token}\r\n"
            );
            ask(&server, &headers, "GET", "/_session", None)
        };
        let shown = asked("ada", "editor, _admin,[x", ADA).expect(200).value();
        if trusted != "127.0.0.1" {
            assert_eq!(shown["userCtx"]["name"], Value::Null);
            continue;
        }
        assert_eq!(shown["userCtx"], json!({"name": "ada", "roles": ["editor"]}));
        assert_eq!(shown["info"]["authenticated"], "proxy");
        for (name, token) in [("bob", ADA), ("ada", ""), ("ada", &ADA[2..]), ("", ADA)] {
            asked(name, "", token).expect_error(401, "unauthorized");
        }
        change(&server, "ada", &json!({"Disabled": true}));
        asked("ada", "", ADA).expect_error(403, "forbidden");
    }
}

#[test]
fn tokens_of_a_provider_are_verified_by_keys_that_are_fetched_once() {
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start();
    let settings = small_with([
        ("SCRINIUM_OIDC__ISSUER", provider.issuer.clone()),
        ("SCRINIUM_OIDC__AUDIENCES", "mail".to_owned()),
        ("SCRINIUM_OIDC__NAME_CLAIM", "preferred_username".to_owned()),
        ("SCRINIUM_SUBMISSION__LISTEN", "127.0.0.1:0".to_owned()),
        ("SCRINIUM_SUBMISSION__LOOPBACK_WITHOUT_TLS", "true".to_owned()),
    ]);
    let server = start_with(folder.path(), &settings);
    change(&server, "ada", &json!({"password": ADA}));
    let claims = |changed: Value| {
        let mut claims = json!({"iss": provider.issuer, "aud": "mail", "sub": "42", "preferred_username": "ada",
            "exp": now_s() + 600});
        claims.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
        claims
    };
    let good = bearer(&provider.token("one", &claims(json!({}))));
    for _ in 0..5 {
        assert_eq!(name_of(&server, &good), "ada");
    }
    assert_eq!(provider.asked(), 2, "the provider's document and its keys");
    // Keys that nobody has are asked for at most once a minute.
    let unknown = bearer(&provider.token("two", &claims(json!({}))));
    (0..20).for_each(|_| ask(&server, &unknown, "GET", "/_session", None).expect_error(401, "unauthorized"));
    assert_eq!(provider.asked(), 2);
    let other = Provider::start();
    for wrong in [
        provider.token("one", &claims(json!({"aud": "other"}))),
        provider.token("one", &claims(json!({"exp": now_s() - 600}))),
        provider.token("one", &claims(json!({"preferred_username": "nobody"}))),
        provider.token("one", &claims(json!({"iss": other.issuer}))),
        other.token("one", &claims(json!({}))),
        other.token("one", &claims(json!({"iss": other.issuer}))),
    ] {
        ask(&server, &bearer(&wrong), "GET", "/_session", None).expect_error(401, "unauthorized");
    }
    assert_eq!(other.asked(), 0, "only the provider that is configured is asked");
    ask(&server, &good, "GET", "/_credentials", None).expect_error(403, "forbidden");
    // The provider does not say that it was two factors.
    change(&server, "ada", &json!({"SecondFactor": "required"}));
    assert_eq!(name_of(&server, &good), Value::Null);
    change(&server, "ada", &json!({"SecondFactor": null, "Disabled": true}));
    ask(&server, &good, "GET", "/_session", None).expect_error(403, "forbidden");
    // A mail program shows the same token (XOAUTH2, RFC 7628).
    change(&server, "ada", &json!({"Disabled": null}));
    let submitted = |token: &str| submitted(&server, token);
    let reply = submitted(&provider.token("one", &claims(json!({}))));
    assert!(reply.starts_with("235"), "{reply}");
    for wrong in
        [json!({"aud": "other"}), json!({"preferred_username": "nobody"}), json!({"exp": now_s() - 600})]
    {
        assert!(submitted(&provider.token("one", &claims(wrong.clone()))).starts_with("535"), "{wrong}");
    }
}

#[test]
fn a_provider_that_is_away_lets_nobody_in_and_holds_up_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    // It takes connections, and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let issuer = format!("http://{}", silent.local_addr().unwrap());
    let settings = small_with([
        ("SCRINIUM_OIDC__ISSUER", issuer.clone()),
        ("SCRINIUM_OIDC__AUDIENCES", "mail".to_owned()),
    ]);
    let server = start_with(folder.path(), &settings);
    let token = Provider::start().token("one", &json!({"iss": issuer, "aud": "mail", "sub": "42"}));
    std::thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..4).map(|_| scope.spawn(|| ask(&server, &bearer(&token), "GET", "/_session", None))).collect();
        assert_eq!(name_of(&server, &basic("admin", crate::common::PASSWORD)), "admin");
        for answer in waiting {
            answer.join().unwrap().expect_error(401, "unauthorized");
        }
    });
    server.client().get("/_up").unwrap().expect(200);
}

#[test]
fn an_account_that_is_closed_opens_by_nothing_until_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &SMALL);
    change(&server, "ada", &json!({"password": ADA}));
    let own = cookie(&with_password(&server, "ada", ADA).expect(200));
    let (_, text) = app_password(&server, &own, "sync", &["http"]);
    let program = basic("ada", &text);
    for (closed, open) in [
        (json!({"Disabled": true}), json!({"Disabled": false})),
        (json!({"Expires": "2020-01-01"}), json!({"Expires": null})),
    ] {
        assert_eq!(name_of(&server, &program), "ada");
        change(&server, "ada", &closed);
        assert_eq!(name_of(&server, &own), Value::Null, "{closed}");
        ask(&server, &program, "GET", "/_session", None).expect_error(403, "forbidden");
        with_password(&server, "ada", ADA).expect_error(403, "forbidden");
        with_password(&server, "ada", "wrong").expect_error(401, "unauthorized");
        change(&server, "ada", &open);
    }
    change(&server, "ada", &json!({"Protocols": ["imap"]}));
    ask(&server, &program, "GET", "/_session", None).expect_error(403, "forbidden");
}

/// What a command has answered in JSON; it may find a server at work or not.
fn command(root: &Path, server: Option<&Server>, arguments: &[&str]) -> Value {
    let listen = server.map_or_else(|| "127.0.0.1:1".to_owned(), |server| server.address().to_string());
    let output = beside(root, SMALL, &listen, &[&["--json", "person"], arguments].concat()).output().unwrap();
    answer(&output)
}

#[test]
fn commands_manage_credentials_next_to_a_server_and_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut server = Some(Server::start(root, &SMALL));
    change(server.as_ref().unwrap(), "ada", &json!({"password": ADA}));
    let mut texts = Vec::new();
    for _ in 0..2 {
        let at = server.as_ref();
        let made = command(root, at, &["app-password", "add", "ada", "sync", "--protocol", "http"]);
        let id = made["id"].as_str().unwrap().to_owned();
        texts.push(made["password"].as_str().unwrap().to_owned());
        command(root, at, &["app-password", "add", "ada", "phone"]);
        let listed = command(root, at, &["app-password", "list", "ada"]);
        // The one that was removed before is still listed.
        let is_phone = |app: &&Value| app["name"] == "phone" && app["valid"] == true;
        let phone = listed.as_array().unwrap().iter().find(is_phone).unwrap();
        assert_eq!(phone["protocols"], json!(["submission", "imap", "pop3", "managesieve"]));
        let phone = phone["id"].as_str().unwrap().to_owned();
        command(root, at, &["app-password", "remove", "ada", &phone]);
        let listed = command(root, at, &["app-password", "list", "ada"]);
        let valid = listed.as_array().unwrap().iter().filter(|app| app["valid"] == true);
        let ids: Vec<&Value> = valid.map(|app| &app["id"]).collect();
        assert!(ids.contains(&&json!(id)) && !ids.contains(&&json!(phone)), "{ids:?}");
        assert_eq!(command(root, at, &["totp", "show", "ada"])["totp"], false);
        command(root, at, &["totp", "remove", "ada"]);
        command(root, at, &["disable", "ada"]);
        command(root, at, &["enable", "ada"]);
        if let Some(mut running) = server.take() {
            assert!(running.terminate(SOON).success());
        }
    }
    command(root, None, &["totp", "require", "ada"]);
    let server = Server::start(root, &SMALL);
    for text in &texts {
        assert_eq!(name_of(&server, &basic("ada", text)), "ada");
    }
    let first = with_password(&server, "ada", ADA).expect(401).value();
    assert_eq!(first["second_steps"], json!(["set_up"]));
    command(root, Some(&server), &["disable", "ada"]);
    ask(&server, &basic("ada", &texts[0]), "GET", "/_session", None).expect_error(403, "forbidden");
}
