//! A client that trusts tokens has what is there, whatever happens and however little it asks for at a time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::common::{CALENDAR, Server, event};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Put(u8, u8),
    Delete(u8),
    /// Under another name, in the same collection.
    Rename(u8, u8),
    /// Into the other collection, or back.
    Leave(u8),
    Return(u8),
    Sync(u8),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let name = 0..8_u8;
    prop_oneof![
        4 => (name.clone(), any::<u8>()).prop_map(|(name, hour)| Step::Put(name, hour)),
        2 => name.clone().prop_map(Step::Delete),
        1 => (name.clone(), 0..8_u8).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => name.clone().prop_map(Step::Leave),
        1 => name.prop_map(Step::Return),
        2 => (1..6_u8).prop_map(Step::Sync),
    ]
}

/// What a client knows: names with their tags, and how far.
#[derive(Default)]
struct Client {
    known: BTreeMap<String, String>,
    token: String,
}

impl Client {
    /// One request; whether there is more.
    fn ask(&mut self, server: &Server, limit: u8) -> bool {
        let body = format!(
            "<D:sync-collection xmlns:D=\"DAV:\"><D:sync-token>{}</D:sync-token><D:sync-level>1</D:sync-level>\
             <D:limit><D:nresults>{limit}</D:nresults></D:limit><D:prop><D:getetag/></D:prop></D:sync-collection>",
            self.token
        );
        let told = server.ask("REPORT", CALENDAR, body).multistatus();
        let mut is_cut = false;
        for response in &told.responses {
            let href = response.href().to_owned();
            match response.status {
                Some(507) => is_cut = true,
                Some(404) => drop(self.known.remove(&href)),
                _ => {
                    let tag = response.property("DAV:", "getetag").unwrap().text();
                    self.known.insert(href, tag);
                }
            }
        }
        self.token = told.sync_token.unwrap();
        is_cut
    }
}

fn listed(server: &Server) -> BTreeMap<String, String> {
    let told = server.ask(
        "PROPFIND",
        CALENDAR,
        "<D:propfind xmlns:D=\"DAV:\"><D:prop><D:getetag/></D:prop></D:propfind>",
    );
    let responses = told.multistatus().responses.into_iter().skip(1);
    responses.map(|one| (one.href().to_owned(), one.property("DAV:", "getetag").unwrap().text())).collect()
}

pub(crate) fn carry_out(server: &Server, step: &Step) {
    const OTHER: &str = "/_dav/calendars/ada/other/";
    let go = |from: String, to: String| {
        server.ask_as("ada", "MOVE", &from, &[("destination", &to), ("overwrite", "F")], "")
    };
    let answer = match step {
        Step::Put(name, hour) => server.put(
            &format!("{name}.ics"),
            &event(&format!("u{name}-{}", hour % 2), &format!(":20260310T{:02}0000Z", hour % 24), ""),
        ),
        Step::Delete(name) => server.ask("DELETE", &format!("{CALENDAR}{name}.ics"), ""),
        Step::Rename(from, to) => go(format!("{CALENDAR}{from}.ics"), format!("{CALENDAR}{to}.ics")),
        Step::Leave(name) => go(format!("{CALENDAR}{name}.ics"), format!("{OTHER}{name}.ics")),
        Step::Return(name) => go(format!("{OTHER}{name}.ics"), format!("{CALENDAR}{name}.ics")),
        Step::Sync(_) => return,
    };
    assert!(answer.status < 500, "{step:?}: {}", answer.text());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn what_a_client_knows_is_what_is_there(steps in proptest::collection::vec(step(), 1..40)) {
        let server = Server::start();
        server.ask("MKCALENDAR", "/_dav/calendars/ada/other/", "").expect(201);
        let mut client = Client::default();
        for step in steps {
            carry_out(&server, &step);
            if let Step::Sync(limit) = step {
                client.ask(&server, limit);
            }
        }
        while client.ask(&server, 3) {}
        prop_assert_eq!(&client.known, &listed(&server));
        // Who knows all hears nothing, and a service that has followed nothing says the same.
        prop_assert!(!client.ask(&server, 3));
        let fresh = server.ask_of(&server.fresh(), "ada", ("PROPFIND", CALENDAR), &[("depth", "1")], "");
        prop_assert_eq!(fresh.text(), server.ask("PROPFIND", CALENDAR, "").text());
    }
}

#[test]
fn tokens_of_others_of_the_future_and_of_nobody_are_refused() {
    let server = Server::start();
    let mut client = Client::default();
    client.ask(&server, 5);
    let ours = client.token.clone();
    let (rest, change) = ours.rsplit_once(':').unwrap();
    let change: u64 = change.parse().unwrap();
    server.ask("MKCALENDAR", "/_dav/calendars/ada/other/", "").expect(201);
    let sync = |path: &str, token: &str| {
        let body = format!(
            "<D:sync-collection xmlns:D=\"DAV:\"><D:sync-token>{token}</D:sync-token><D:sync-level>1</D:sync-level>\
             <D:prop><D:getetag/></D:prop></D:sync-collection>"
        );
        server.ask("REPORT", path, body)
    };
    sync(CALENDAR, &ours).expect(207);
    let refused = [
        (CALENDAR, format!("{rest}:{}", change + 1_000_000)),
        ("/_dav/calendars/ada/other/", ours.clone()),
        (CALENDAR, "x".to_owned()),
        (CALENDAR, "urn:scrinium:sync:".to_owned()),
        (CALENDAR, ours.replace("sync:", "sync:00")),
    ];
    for (path, token) in refused {
        let answer = sync(path, &token).expect(403);
        assert!(answer.text().contains("valid-sync-token"), "{token}");
    }
    let infinite = "<D:sync-collection xmlns:D=\"DAV:\"><D:sync-token/><D:sync-level>infinite</D:sync-level>\
        <D:prop/></D:sync-collection>";
    server.ask("REPORT", CALENDAR, infinite).expect(403);
}
