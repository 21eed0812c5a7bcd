//! `/_node/_local/_config`: what CouchDB's tools read and set.

use serde_json::json;

use crate::common::Server;

#[tokio::test(flavor = "multi_thread")]
async fn tools_read_sections_and_keys_and_no_secret() {
    let server = Server::start().await;
    let all = server.ask("GET", "/_node/_local/_config", ()).await.expect(200).json();
    assert_eq!(all["http"]["listen"], "127.0.0.1:5984");
    assert_eq!(all["mail"]["relay_password"], "********");
    assert_eq!(
        (&all["uuids"]["algorithm"], &all["chttpd"]["enable_cors"]),
        (&json!("sequential"), &json!("false"))
    );
    let section = server.ask("GET", "/_node/_local/_config/log", ()).await.expect(200).json();
    assert_eq!(section, json!({"level": "info"}));
    server.ask("GET", "/_node/_local/_config/none", ()).await.expect_text(200, "{}\n");
    server.ask("GET", "/_node/_local/_config/log/level", ()).await.expect_text(200, "\"info\"\n");
    let none = server.ask("GET", "/_node/_local/_config/log/none", ()).await;
    none.expect_error(404, "not_found", "unknown_config_value");
    server.ask("GET", "/_node/other/_config", ()).await.expect(404);
    for name in ["", "ada"] {
        server.ask_as(name, "GET", "/_node/_local/_config", ()).await.expect(401);
        server
            .ask_as(name, "PUT", "/_node/_local/_config/log/level", (&[][..], "\"debug\""))
            .await
            .expect(401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_set_as_on_the_console() {
    let server = Server::start().await;
    let put = async |key: &str, value: &str| {
        server.ask("PUT", &format!("/_node/_local/_config/{key}"), (&[][..], value.to_owned())).await
    };
    put("log/level", "\"debug\"").await.expect_text(200, "\"info\"\n");
    // What is so already is no matter.
    put("uuids/algorithm", "\"sequential\"").await.expect_text(200, "\"sequential\"\n");
    for (key, value, status) in [
        ("uuids/algorithm", "\"random\"", 403),
        ("none/none", "\"x\"", 403),
        ("http/listen", "\"0.0.0.0:80\"", 403),
        ("cors/origins", "\"*\"", 403),
        ("log/level", "7", 400),
        ("log/level", "\"a\\nb\"", 400),
    ] {
        put(key, value).await.expect(status);
    }
    server.ask("DELETE", "/_node/_local/_config/log/level", ()).await.expect(403);
    server.ask("DELETE", "/_node/_local/_config/log/none", ()).await.expect(404);
}
