//! Files: what is stored comes back, copies and moves take along what they should, locks hold, and nobody reaches another's.

use std::time::Duration;

use crate::common::{Answer, Server};

const ROOT: &str = "/_dav/files/ada/";

fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    server.ask_as("ada", method, &format!("{ROOT}{path}"), headers, body.to_owned())
}

fn put(server: &Server, path: &str, body: &str) -> Answer {
    ask(server, "PUT", path, &[("content-type", "text/plain")], body)
}

/// Copies or moves.
fn bring(server: &Server, method: &str, from: &str, to: &str, more: &[(&str, &str)]) -> Answer {
    let to = format!("{ROOT}{to}");
    let headers = [&[("destination", to.as_str())][..], more].concat();
    ask(server, method, from, &headers, "")
}

/// All that is there, by paths below a collection.
fn tree(server: &Server, path: &str) -> Vec<String> {
    let told = ask(server, "PROPFIND", path, &[("depth", "1")], "").multistatus();
    let mut all = Vec::new();
    for response in told.responses.iter().skip(1) {
        let below = response.href().strip_prefix(ROOT).unwrap().to_owned();
        if below.ends_with('/') {
            all.push(below.clone());
            all.extend(tree(server, &below));
        } else {
            all.push(below);
        }
    }
    all.sort();
    all
}

fn set(server: &Server, path: &str, value: &str) -> Answer {
    let body = format!(
        "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><x:colour xmlns:x=\"urn:x\">{value}</x:colour></D:prop></D:set></D:propertyupdate>"
    );
    ask(server, "PROPPATCH", path, &[], &body)
}

fn colour(server: &Server, path: &str) -> Option<String> {
    let body = "<D:propfind xmlns:D=\"DAV:\"><D:prop><x:colour xmlns:x=\"urn:x\"/></D:prop></D:propfind>";
    let told = ask(server, "PROPFIND", path, &[("depth", "0")], body).multistatus();
    told.responses[0].property("urn:x", "colour").map(scrinium_dav_wire::xml::Element::text)
}

fn lock(server: &Server, who: &str, path: &str, scope: &str, headers: &[(&str, &str)]) -> Answer {
    let body = format!(
        "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype>\
         <D:owner>{who}</D:owner></D:lockinfo>"
    );
    server.ask_as(who, "LOCK", &format!("{ROOT}{path}"), headers, body)
}

fn token(answer: &Answer) -> String {
    answer.headers["lock-token"].to_str().unwrap().to_owned()
}

#[test]
fn files_come_back_and_go_where_they_are_brought() {
    let server = Server::start();
    put(&server, "a.txt", "one").expect(201);
    put(&server, "a.txt", "two").expect(204);
    put(&server, "none/a.txt", "two").expect(409);
    let got = ask(&server, "GET", "a.txt", &[], "").expect(200);
    assert_eq!((got.text().as_str(), &got.headers["content-type"]), ("two", &"text/plain".parse().unwrap()));
    let tag = got.tag();
    ask(&server, "GET", "a.txt", &[("if-none-match", &tag)], "").expect(304);
    ask(&server, "PUT", "a.txt", &[("if-none-match", "*")], "x").expect(412);
    ask(&server, "PUT", "a.txt", &[("if-match", "\"other\"")], "x").expect(412);
    ask(&server, "MKCOL", "c", &[], "").expect(201);
    ask(&server, "MKCOL", "c", &[], "").expect(405);
    ask(&server, "MKCOL", "a.txt", &[], "").expect(405);
    ask(&server, "MKCOL", "x/y", &[], "").expect(409);
    ask(&server, "MKCOL", "C", &[], "").expect(403);
    ask(&server, "MKCOL", "with", &[], "a body").expect(415);
    put(&server, "c", "a file").expect(405);
    ask(&server, "MKCOL", "c/d/", &[], "").expect(201);
    put(&server, "c/d/%C3%BC%20b.txt", "deep").expect(201);
    set(&server, "c/d/%C3%BC%20b.txt", "red").multistatus();
    set(&server, "c/d", "blue").multistatus();
    // Copies take all along, and leave all where it was.
    bring(&server, "COPY", "c", "e", &[]).expect(201);
    bring(&server, "COPY", "c", "e", &[("overwrite", "F")]).expect(412);
    bring(&server, "COPY", "a.txt", "e", &[]).expect(204);
    assert_eq!(tree(&server, ""), ["a.txt", "c/", "c/d/", "c/d/%C3%BC%20b.txt", "e"]);
    bring(&server, "COPY", "c", "e", &[]).expect(204);
    bring(&server, "COPY", "c", "f", &[("depth", "0")]).expect(201);
    assert_eq!(colour(&server, "e/d/%C3%BC%20b.txt").as_deref(), Some("red"));
    assert_eq!(colour(&server, "e/d").as_deref(), Some("blue"));
    for (from, to, status) in
        [("c", "c", 403), ("c", "c/d/x", 403), ("c/d", "c", 403), ("a.txt", "none/x", 409)]
    {
        bring(&server, "COPY", from, to, &[]).expect(status);
        bring(&server, "MOVE", from, to, &[]).expect(status);
    }
    bring(&server, "MOVE", "e", "f/e", &[]).expect(201);
    bring(&server, "MOVE", "a.txt", "f/e/d/a.txt", &[]).expect(201);
    bring(&server, "MOVE", "f/e/d/a.txt", "c/d/%C3%BC%20b.txt", &[]).expect(204);
    assert_eq!(ask(&server, "GET", "c/d/%C3%BC%20b.txt", &[], "").expect(200).text(), "two");
    assert_eq!(
        tree(&server, ""),
        ["c/", "c/d/", "c/d/%C3%BC%20b.txt", "f/", "f/e/", "f/e/d/", "f/e/d/%C3%BC%20b.txt"]
    );
    ask(&server, "DELETE", "f", &[("depth", "0")], "").expect(400);
    ask(&server, "DELETE", "f", &[], "").expect(204);
    ask(&server, "DELETE", "f", &[], "").expect(404);
    ask(&server, "DELETE", "", &[], "").expect(403);
    assert_eq!(tree(&server, ""), ["c/", "c/d/", "c/d/%C3%BC%20b.txt"]);
    ask(&server, "PROPFIND", "", &[("depth", "infinity")], "").expect(403);
}

#[test]
fn a_property_is_set_with_all_others_or_none_is() {
    let server = Server::start();
    put(&server, "a.txt", "one").expect(201);
    let body = "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><x:colour xmlns:x=\"urn:x\">red</x:colour>\
        <D:getetag>mine</D:getetag></D:prop></D:set></D:propertyupdate>";
    let told = ask(&server, "PROPPATCH", "a.txt", &[], body).multistatus();
    let statuses: Vec<u16> = told.responses[0].properties.iter().map(|part| part.status).collect();
    assert_eq!((statuses, colour(&server, "a.txt")), (vec![403, 424], None));
    set(&server, "a.txt", &"x".repeat(70_000)).expect(507);
    set(&server, "a.txt", "red").multistatus();
    put(&server, "a.txt", "two").expect(204);
    assert_eq!(colour(&server, "a.txt").as_deref(), Some("red"));
}

#[test]
fn who_has_no_token_changes_nothing_that_is_locked() {
    let server = Server::start();
    put(&server, "a.txt", "one").expect(201);
    ask(&server, "MKCOL", "c", &[], "").expect(201);
    put(&server, "c/b.txt", "one").expect(201);
    let held =
        lock(&server, "ada", "a.txt", "exclusive", &[("depth", "0"), ("timeout", "Second-100")]).expect(200);
    let held = token(&held);
    let if_held = format!("({held})");
    for who in ["ada", "edith"] {
        lock(&server, who, "a.txt", "exclusive", &[]).expect(423);
        lock(&server, who, "a.txt", "shared", &[]).expect(423);
        for (method, to) in [("PUT", ""), ("DELETE", ""), ("PROPPATCH", ""), ("MOVE", "x"), ("COPY", "a.txt")]
        {
            let from = if method == "COPY" { "c/b.txt" } else { "a.txt" };
            let to = format!("{ROOT}{to}");
            let body = "<D:propertyupdate xmlns:D=\"DAV:\"><D:remove><D:prop><D:x/></D:prop></D:remove></D:propertyupdate>";
            let answer = server.ask_as(who, method, &format!("{ROOT}{from}"), &[("destination", &to)], body);
            assert_eq!(answer.status, 423, "{who} {method}: {}", answer.text());
        }
    }
    // A token is its holder's alone, and one that is made up opens nothing.
    let theirs = server.ask_as("edith", "PUT", &format!("{ROOT}a.txt"), &[("if", &if_held)], "x");
    assert_eq!(theirs.status, 423);
    ask(&server, "PUT", "a.txt", &[("if", "(<urn:uuid:none>)")], "x").expect(412);
    ask(&server, "PUT", "a.txt", &[("if", "(<urn:uuid:none>) (Not <DAV:no-lock>)")], "x").expect(423);
    ask(&server, "PUT", "a.txt", &[("if", "nonsense")], "x").expect(400);
    ask(&server, "PUT", "a.txt", &[("if", &if_held)], "two").expect(204);
    // Of what is locked within a collection the collection does not go.
    let within = token(&lock(&server, "ada", "c/b.txt", "shared", &[]).expect(200));
    ask(&server, "DELETE", "c", &[], "").expect(423);
    let tagged = format!("<{ROOT}c/b.txt> ({within})");
    ask(&server, "DELETE", "c", &[("if", &tagged)], "").expect(204);
    server.ask_as("edith", "UNLOCK", &format!("{ROOT}a.txt"), &[("lock-token", &held)], "").expect(403);
    ask(&server, "UNLOCK", "a.txt", &[("lock-token", "<urn:uuid:none>")], "").expect(409);
    ask(&server, "UNLOCK", "a.txt", &[("lock-token", &held)], "").expect(204);
    put(&server, "a.txt", "free").expect(204);
}

#[test]
fn a_lock_ends_unless_it_is_asked_for_again_and_a_free_name_can_be_held() {
    let server = Server::start();
    let made = lock(&server, "ada", "new.txt", "exclusive", &[("timeout", "Infinite")]).expect(201);
    assert_eq!(ask(&server, "GET", "new.txt", &[], "").expect(200).text(), "");
    let if_held = format!("({})", token(&made));
    server.manual.advance(Duration::from_secs(3_000));
    let refreshed =
        ask(&server, "LOCK", "new.txt", &[("if", &if_held), ("timeout", "Second-4000000000")], "")
            .expect(200);
    assert!(refreshed.text().contains("Second-3600"), "{}", refreshed.text());
    server.manual.advance(Duration::from_secs(3_000));
    put(&server, "new.txt", "x").expect(423);
    server.manual.advance(Duration::from_secs(601));
    put(&server, "new.txt", "x").expect(204);
    ask(&server, "LOCK", "new.txt", &[("if", &if_held)], "").expect(412);
    // A lock of a collection holds for what comes into it.
    ask(&server, "MKCOL", "c", &[], "").expect(201);
    let deep = token(&lock(&server, "ada", "c", "exclusive", &[]).expect(200));
    put(&server, "c/x.txt", "x").expect(423);
    ask(&server, "PUT", "c/x.txt", &[("if", &format!("<{ROOT}c> ({deep})"))], "x").expect(201);
    lock(&server, "ada", "c/x.txt", "exclusive", &[]).expect(423);
    lock(&server, "ada", "none/x.txt", "exclusive", &[]).expect(409);
    for (headers, body) in
        [(&[("depth", "1")][..], None), (&[], Some("<D:lockinfo xmlns:D=\"DAV:\"/>")), (&[], Some("<"))]
    {
        let answer = match body {
            Some(body) => ask(&server, "LOCK", "new.txt", headers, body),
            None => lock(&server, "ada", "new.txt", "exclusive", headers),
        };
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let body = format!(
        "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner>{}</D:owner></D:lockinfo>",
        "x".repeat(3_000)
    );
    ask(&server, "LOCK", "new.txt", &[], &body).expect(400);
}

#[test]
fn everybody_reaches_the_files_that_they_may_and_no_others() {
    let server = Server::start();
    put(&server, "secret.txt", "rosebud").expect(201);
    let to = format!("{ROOT}other.txt");
    let property =
        "<D:propertyupdate xmlns:D=\"DAV:\"><D:remove><D:prop><D:x/></D:prop></D:remove></D:propertyupdate>";
    let lockinfo = "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>";
    for who in ["bob", "admin", "", "rita", "edith"] {
        for (method, name, body) in [
            ("GET", "secret.txt", ""),
            ("PROPFIND", "", ""),
            ("PUT", "secret.txt", "x"),
            ("PUT", "new.txt", "x"),
            ("MKCOL", "new", ""),
            ("PROPPATCH", "secret.txt", property),
            ("LOCK", "secret.txt", lockinfo),
            ("LOCK", "free.txt", lockinfo),
            ("UNLOCK", "secret.txt", ""),
            ("COPY", "secret.txt", ""),
            ("MOVE", "secret.txt", ""),
            ("DELETE", "other.txt", ""),
        ] {
            let headers = [("destination", to.as_str()), ("depth", "1"), ("lock-token", "<urn:uuid:none>")];
            let headers =
                if matches!(method, "COPY" | "MOVE" | "LOCK") { &headers[..1] } else { &headers[..] };
            let answer = server.ask_as(who, method, &format!("{ROOT}{name}"), headers, body);
            let asked = format!("{who}: {method} {name}: {}", answer.text());
            match (who, method) {
                ("rita" | "edith", "GET" | "PROPFIND") => assert!(answer.status < 300, "{asked}"),
                ("rita", _) => assert!([403, 404].contains(&answer.status), "{asked}"),
                ("edith", "UNLOCK") => assert_eq!(answer.status, 409, "{asked}"),
                ("edith", "DELETE") => assert_eq!(answer.status, 204, "{asked}"),
                // Locked by herself, and no token brought.
                ("edith", "COPY") => assert_eq!(answer.status, 201, "{asked}"),
                ("edith", "MOVE") => assert_eq!(answer.status, 423, "{asked}"),
                ("edith", _) => assert!(answer.status < 300, "{asked}"),
                _ => assert!(answer.status == 404 && !answer.text().contains("rosebud"), "{asked}"),
            }
        }
    }
    // Nor is anything brought out of what somebody does not see.
    let own = [("destination", "/_dav/files/bob/mine.txt")];
    server.ask_as("bob", "PROPFIND", "/_dav/files/bob/", &[("depth", "0")], "").expect(207);
    server.ask_as("bob", "COPY", &format!("{ROOT}secret.txt"), &own, "").expect(404);
    server.ask_as("ada", "COPY", &format!("{ROOT}secret.txt"), &own, "").expect(404);
}
