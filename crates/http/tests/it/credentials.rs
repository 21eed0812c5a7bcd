//! What people do with their credentials: what the port takes, hands on, and answers.

use std::time::Duration;

use scrinium_http::{CredentialRefusal, LoginRefusal};
use serde_json::{Value, json};

use crate::common::{Server, basic};

const PHONE: &str = "/_credentials/app_passwords/k3f9";

/// Requests that are as they should be, and what is asked of the directory by them.
fn requests() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let passkey = json!({"rawId": "AA", "type": "public-key"});
    vec![
        ("GET", "/_credentials", Value::Null, "list"),
        (
            "POST",
            "/_credentials/app_passwords",
            json!({"name": "phone", "protocols": ["mail", "http"], "expires_ms": 5}),
            "add app password phone for [\"mail\", \"http\"] until Some(5)",
        ),
        ("PUT", PHONE, json!({"name": "old phone"}), "rename app password k3f9 old phone"),
        ("DELETE", PHONE, Value::Null, "revoke app password k3f9"),
        ("POST", "/_credentials/totp", json!({}), "begin authenticator"),
        (
            "PUT",
            "/_credentials/totp",
            json!({"begun": "b", "code": "123456"}),
            "confirm authenticator b 123456",
        ),
        ("DELETE", "/_credentials/totp", Value::Null, "remove authenticator"),
        ("POST", "/_credentials/recovery_codes", json!({}), "renew recovery codes"),
        ("POST", "/_credentials/passkey_options", json!({}), "begin passkey"),
        (
            "POST",
            "/_credentials/passkeys",
            json!({"challenge": "c", "name": "key", "passkey": passkey}),
            "add passkey c key {\"rawId\":\"AA\",\"type\":\"public-key\"}",
        ),
        ("DELETE", "/_credentials/passkeys/AAEC", Value::Null, "remove passkey AAEC"),
        ("GET", "/_credentials/sessions", Value::Null, "list sessions"),
        ("DELETE", "/_credentials/sessions/0a1b", Value::Null, "end session 0a1b"),
        ("DELETE", "/_credentials/sessions", Value::Null, "end other sessions"),
        ("PUT", "/_credentials/links/a%7C42", json!({}), "link a|42"),
        ("DELETE", "/_credentials/links/a%7C42", Value::Null, "unlink a|42"),
    ]
}

/// Of these the record of what was done tells.
const RECORDED: [&str; 11] = [
    "session ended",
    "other sessions ended",
    "app password made",
    "app password revoked",
    "authenticator added",
    "authenticator removed",
    "recovery codes renewed",
    "passkey added",
    "passkey removed",
    "provider's account linked",
    "provider's account unlinked",
];

#[tokio::test(flavor = "multi_thread")]
async fn each_address_of_credentials_hands_on_what_is_asked_and_by_whom() {
    let server = Server::start().await;
    for (method, path, body, asked) in requests() {
        let send = async |name: &str, path: &str| match &body {
            Value::Null => server.ask_as(name, method, path, ()).await,
            body => server.ask_as(name, method, path, body.clone()).await,
        };
        let answer = send("bob", path).await.expect(200);
        assert_eq!(answer.json(), json!({"ok": true}));
        assert_eq!(answer.header("set-cookie").is_some(), asked.starts_with("confirm"), "{asked}");
        assert_eq!(server.people.asked(), [format!("bob: {asked}")]);
        send("", path).await.expect(401);
        // What has no such parameter refuses it, no matter who asks: only the person can set that up.
        let other = format!("{path}?person=bob");
        assert!(!send("ada", &other).await.status.is_success(), "{other}");
        assert_eq!(server.people.asked(), Vec::<String>::new(), "{other}");
        if send("admin", &other).await.status == 200 {
            assert_eq!(server.people.asked(), [format!("admin of bob: {asked}")]);
        }
    }
    let told = server.observed.audited.lock().unwrap().clone();
    for change in RECORDED {
        let line = format!("bob: credentials changed person:bob {{\"change\":\"{change}\"}}");
        assert!(told.contains(&line), "{line} is not among {told:?}");
    }
    assert!(!told.iter().any(|line| line.contains("123456") || line.contains("phone")), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_step_sets_an_authenticator_up_and_nothing_else() {
    let server = Server::start().await;
    server.ask_as("", "POST", "/_session/totp", json!({"step": "s"})).await.expect(200);
    assert_eq!(server.people.asked(), ["step s: begin authenticator"]);
    let confirmed =
        server.ask_as("", "PUT", "/_session/totp", json!({"step": "s", "begun": "b", "code": "1"})).await;
    assert!(confirmed.expect(200).header("set-cookie").is_some());
    assert_eq!(server.people.asked(), ["step s: confirm authenticator b 1"]);
    for body in [json!({}), json!({"step": 5}), json!({"step": null}), json!([])] {
        server.ask_as("bob", "POST", "/_session/totp", body).await.expect(400);
    }
    server.ask_as("", "POST", "/_session/passkey_options", json!({})).await.expect_error(
        403,
        "forbidden",
        "Passkeys are not offered here.",
    );
    assert_eq!(server.people.asked(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn why_credentials_were_not_changed_is_said_in_the_status() {
    let server = Server::start().await;
    let locked = LoginRefusal::Locked { retry_after: Duration::from_secs(1) };
    let busy = LoginRefusal::Busy { retry_after: Duration::from_secs(1) };
    for (refusal, status, error) in [
        (CredentialRefusal::Invalid("a".to_owned()), 400, "bad_request"),
        (CredentialRefusal::Forbidden("a".to_owned()), 403, "forbidden"),
        (CredentialRefusal::Stale, 403, "sign_in_again"),
        (CredentialRefusal::NotFound("a".to_owned()), 404, "not_found"),
        (CredentialRefusal::Login(LoginRefusal::Wrong), 401, "unauthorized"),
        (CredentialRefusal::Login(locked), 403, "forbidden"),
        (CredentialRefusal::Login(busy), 429, "too_many_requests"),
        (CredentialRefusal::Failed("a".to_owned()), 503, "service_unavailable"),
    ] {
        *server.people.refusal.lock().unwrap() = Some(refusal.clone());
        let answer = server.ask_as("bob", "DELETE", PHONE, ()).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]), (status, &json!(error)), "{refusal:?}");
    }
    assert!(server.observed.audited.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bodies_reach_nobodys_credentials() {
    let server = Server::start().await;
    let changes: Vec<_> = requests().into_iter().filter(|(_, _, body, _)| body.is_object()).collect();
    for (method, path, body, _) in &changes {
        // A form of another site cannot say that it is JSON.
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
            let sent = (&[("content-type", kind)][..], body.to_string());
            server.ask_as("bob", method, path, sent).await.expect(415);
        }
        server.ask_as("bob", method, path, (&[][..], body.to_string())).await.expect(415);
        let takes_a_body = body != &json!({});
        let json = [("content-type", "application/json")];
        for text in ["[]", "5", "\"x\"", "{", "", "{\"name\":", "\u{0}", &"[".repeat(90)] {
            if takes_a_body {
                server.ask_as("bob", method, path, (&json[..], text.to_owned())).await.expect(400);
            }
        }
        if takes_a_body {
            server.ask_as("bob", method, path, (&json[..], "[".repeat(1001))).await.expect(413);
        }
        let members = body.as_object().unwrap();
        for name in members.keys().filter(|name| *name != "expires_ms") {
            let mut without = body.clone();
            without.as_object_mut().unwrap().remove(name);
            server.ask_as("bob", method, path, without).await.expect(400);
        }
        for name in members.keys() {
            for wrong in [json!(true), json!(-1), json!([5]), json!("{}"), json!([["a"]])] {
                let mut spoiled = body.clone();
                spoiled[name] = wrong.clone();
                // A text is right where a text is wanted.
                if !(wrong.is_string() && members[name].is_string()) {
                    server.ask_as("bob", method, path, spoiled).await.expect(400);
                }
            }
        }
        let mut long = body.clone();
        long["name"] = "x".repeat(70_000).into();
        if takes_a_body {
            server.ask_as("bob", method, path, long).await.expect(413);
        }
    }
    let most: Vec<Value> = vec!["mail".into(); 200];
    let many = json!({"name": "phone", "protocols": most});
    let refused = server.ask_as("bob", "POST", "/_credentials/app_passwords", many).await;
    assert!(refused.status.is_client_error(), "{}", refused.status);
    assert_eq!(server.people.asked(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_looked_at_only_where_keys_are_known() {
    let server = Server::start().await;
    let with = |token: &str| [("authorization".to_owned(), token.to_owned())];
    let ask = async |token: &str| {
        let headers = with(token);
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        server.ask_as("", "GET", "/_session", &headers[..]).await
    };
    // As before: a header of a kind that nobody knows counts for nothing.
    assert_eq!(ask("Bearer ada").await.expect(200).json()["userCtx"]["name"], Value::Null);
    server.people.takes_tokens();
    let known = ask("bearer ada").await.expect(200).json();
    assert_eq!((&known["userCtx"]["name"], &known["info"]["authenticated"]), (&json!("ada"), &json!("jwt")));
    for wrong in ["Bearer", "Bearer ", "Bearer nobody", "Bearer \u{e4}", "Bearer a b"] {
        assert_ne!(ask(wrong).await.json()["userCtx"]["name"], "ada", "{wrong}");
    }
    ask("Bearer nobody").await.expect(401);
    assert_eq!(ask(&basic("bob", "secret")).await.expect(200).json()["userCtx"]["name"], "bob");
}
