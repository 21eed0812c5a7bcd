//! A client that writes, and knows what the server must have.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::state::{Attachment, Document, State};
use super::{DATABASES, GROUPS, PEOPLE};
use crate::common::{Answer, Client};

/// Documents looked at after each kill, besides those that were written last.
const LOOKED_AT: usize = 5;

/// A memo that was sent to the server once.
pub(crate) struct Memo {
    pub(crate) number: u64,
    pub(crate) recipients: BTreeSet<&'static str>,
    pub(crate) acknowledged: bool,
}

pub(crate) struct Writer {
    pub(crate) number: u64,
    random: StdRng,
    versions: u64,
    pub(crate) documents: BTreeMap<String, Document>,
    pub(crate) memos: Vec<Memo>,
    /// Documents that were written since they were last looked at.
    recent: BTreeSet<String>,
}

impl Writer {
    pub(crate) fn new(number: u64, seed: u64) -> Self {
        Self {
            number,
            random: StdRng::seed_from_u64(seed),
            versions: 0,
            documents: BTreeMap::new(),
            memos: Vec::new(),
            recent: BTreeSet::new(),
        }
    }

    /// Does one thing; an error is the end of the server.
    pub(crate) fn write(&mut self, client: &mut Client) -> io::Result<()> {
        match self.random.random_range(0..100) {
            0..30 => self.put(client, None),
            30..55 => self.put_known(client),
            55..63 => self.delete(client),
            63..73 => self.attach(client),
            73..83 => self.bulk(client),
            _ => self.deposit(client),
        }
    }

    /// Looks at what was written last and at some others: which of the possible states is it?
    pub(crate) fn settle(&mut self, client: &mut Client) {
        let ids: Vec<String> = self.documents.keys().cloned().collect();
        let mut looked_at = std::mem::take(&mut self.recent);
        if !ids.is_empty() {
            looked_at.extend((0..LOOKED_AT).map(|_| ids[self.random.random_range(0..ids.len())].clone()));
        }
        for id in looked_at {
            let document = self.documents.get_mut(&id).unwrap();
            let answer = client.get(&format!("/{}/{id}", DATABASES[document.database])).unwrap();
            let found = if answer.status == 200 { answer.value() } else { Value::Null };
            let reason = if answer.status == 404 { answer.value()["reason"].clone() } else { Value::Null };
            let told = (answer.status, reason.as_str());
            assert!(matches!(told, (200, _) | (404, Some("deleted" | "missing"))), "{id}: {}", answer.text());
            let settled = is_in(&document.settled, &found, &told, self.number);
            match document.maybe.take() {
                _ if settled => {}
                Some(mut maybe) if maybe_is_in(&maybe, &found, &told, self.number) => {
                    maybe.revision = found["_rev"].as_str().map(str::to_owned);
                    document.settled = maybe;
                }
                maybe => panic!(
                    "{id} of {} is {}, which is neither {:?} nor {maybe:?}",
                    DATABASES[document.database],
                    answer.text(),
                    document.settled
                ),
            }
        }
    }

    /// A document in a new state: a new one, or `id` with another version.
    fn next_state(&mut self, id: Option<&str>) -> (String, Value, Document) {
        self.versions += 1;
        let mut document = match id {
            Some(id) => self.documents[id].clone(),
            None => {
                Document { database: self.random.random_range(0..DATABASES.len()), ..Document::default() }
            }
        };
        let id = id.map_or_else(|| format!("c{}-{}", self.number, self.versions), str::to_owned);
        let kept = document.settled.is_present() && self.random.random_ratio(3, 4);
        let mut attachments = if kept { document.settled.attachments.clone() } else { BTreeMap::new() };
        let mut members: serde_json::Map<String, Value> =
            attachments.keys().map(|name| (name.clone(), json!({"stub": true}))).collect();
        if self.random.random_ratio(1, 5) {
            let attachment = Attachment::random(&mut self.random);
            members.insert("inline".to_owned(), attachment.inline());
            attachments.insert("inline".to_owned(), attachment);
        }
        let state = State { version: self.versions, attachments, ..State::default() };
        let mut json = state.fields(self.number);
        json.insert("_id".to_owned(), json!(id));
        if let Some(revision) = document.settled.revision.as_ref().filter(|_| document.settled.is_present()) {
            json.insert("_rev".to_owned(), json!(revision));
        }
        if !members.is_empty() {
            json.insert("_attachments".to_owned(), Value::Object(members));
        }
        document.maybe = Some(state);
        (id, Value::Object(json), document)
    }

    /// Notes what is on its way before it is sent.
    fn note(&mut self, id: &str, document: Document) {
        self.recent.insert(id.to_owned());
        self.documents.insert(id.to_owned(), document);
    }

    fn acknowledge(&mut self, id: &str, revision: &Value) {
        let document = self.documents.get_mut(id).unwrap();
        let mut state = document.maybe.take().unwrap();
        state.revision = Some(revision.as_str().unwrap().to_owned());
        document.settled = state;
    }

    fn acknowledge_answer(&mut self, id: &str, answer: Answer) {
        let status = if answer.status == 200 { 200 } else { 201 };
        let answer = answer.expect(status).value();
        assert_eq!(answer["id"], id);
        self.acknowledge(id, &answer["rev"]);
    }

    fn any(&mut self, wanted: impl Fn(&Document) -> bool) -> Option<String> {
        let ids: Vec<&String> =
            self.documents.iter().filter(|(_, document)| wanted(document)).map(|(id, _)| id).collect();
        (!ids.is_empty()).then(|| ids[self.random.random_range(0..ids.len())].clone())
    }

    fn put(&mut self, client: &mut Client, id: Option<&str>) -> io::Result<()> {
        let (id, json, document) = self.next_state(id);
        let path = format!("/{}/{id}", DATABASES[document.database]);
        self.note(&id, document);
        let answer = client.json("PUT", &path, &json)?;
        self.acknowledge_answer(&id, answer);
        Ok(())
    }

    /// Another version, also of one that was deleted.
    fn put_known(&mut self, client: &mut Client) -> io::Result<()> {
        let id = self.any(|_| true);
        self.put(client, id.as_deref())
    }

    fn delete(&mut self, client: &mut Client) -> io::Result<()> {
        let Some(id) = self.any(|document| document.settled.is_present()) else { return Ok(()) };
        let mut document = self.documents[&id].clone();
        let revision = document.settled.revision.clone().unwrap();
        let path = format!("/{}/{id}?rev={revision}", DATABASES[document.database]);
        document.maybe = Some(State::deleted());
        self.note(&id, document);
        let answer = client.ask("DELETE", &path, "application/json", &[])?;
        self.acknowledge_answer(&id, answer);
        Ok(())
    }

    /// An attachment on its own.
    fn attach(&mut self, client: &mut Client) -> io::Result<()> {
        let Some(id) = self.any(|document| document.settled.is_present()) else { return Ok(()) };
        let mut document = self.documents[&id].clone();
        let revision = document.settled.revision.clone().unwrap();
        let attachment = Attachment::random(&mut self.random);
        let name = format!("file{}", self.random.random_range(0..3));
        let path = format!("/{}/{id}/{name}?rev={revision}", DATABASES[document.database]);
        let mut state = document.settled.clone();
        state.revision = None;
        state.attachments.insert(name, attachment);
        document.maybe = Some(state);
        self.note(&id, document);
        let answer = client.ask("PUT", &path, "application/octet-stream", &attachment.bytes())?;
        self.acknowledge_answer(&id, answer);
        Ok(())
    }

    /// Some documents of one database at once: new ones, later versions and deletions.
    fn bulk(&mut self, client: &mut Client) -> io::Result<()> {
        let database = self.random.random_range(0..DATABASES.len());
        let mut documents: BTreeMap<String, Value> = BTreeMap::new();
        for _ in 0..self.random.random_range(1..8) {
            let known = self.any(|document| document.database == database);
            let known = known.filter(|id| !documents.contains_key(id));
            let settled = known.as_ref().map(|id| self.documents[id].settled.clone());
            let (id, json, document) = match (known, settled) {
                (Some(id), Some(settled)) if settled.is_present() && self.random.random_ratio(1, 4) => {
                    let json = json!({"_id": id, "_rev": settled.revision, "_deleted": true});
                    let document = Document { database, settled, maybe: Some(State::deleted()) };
                    (id, json, document)
                }
                (known, _) => self.next_state(known.as_deref()),
            };
            self.note(&id, Document { database, ..document });
            documents.insert(id, json);
        }
        let body = json!({"docs": documents.into_values().collect::<Vec<_>>()});
        let answer = client.json("POST", &format!("/{}/_bulk_docs", DATABASES[database]), &body)?;
        for row in answer.expect(201).value().as_array().unwrap() {
            assert_eq!(row["ok"], true, "{row}");
            self.acknowledge(row["id"].as_str().unwrap(), &row["rev"]);
        }
        Ok(())
    }

    fn deposit(&mut self, client: &mut Client) -> io::Result<()> {
        let number = self.number * 1_000_000 + self.memos.len() as u64;
        let mut names: Vec<&str> = Vec::new();
        let mut recipients = BTreeSet::new();
        for _ in 0..self.random.random_range(1..4) {
            let person = PEOPLE[self.random.random_range(0..PEOPLE.len())];
            names.push(person);
            recipients.insert(person);
        }
        if self.random.random_ratio(1, 6) {
            let (group, members) = GROUPS[self.random.random_range(0..GROUPS.len())];
            names.push(group);
            recipients.extend(members.iter().map(|place| PEOPLE[*place]));
        }
        let body = "b".repeat(self.random.random_range(0..5_000));
        let memo =
            json!({"Form": "Memo", "From": "p0/Acme", "SendTo": names, "Number": number, "Body": body});
        let mailbox = ["mail.box", "mail1.box", "mail2.box", "mail3.box"][self.random.random_range(0..4)];
        self.memos.push(Memo { number, recipients, acknowledged: false });
        client.json("POST", &format!("/{mailbox}"), &memo)?.expect(201);
        self.memos.last_mut().unwrap().acknowledged = true;
        Ok(())
    }
}

/// Whether what was found is the state that was acknowledged, by its revision too.
fn is_in(state: &State, found: &Value, told: &(u16, Option<&str>), client: u64) -> bool {
    if !state.is_present() {
        let reason = if state.deleted { "deleted" } else { "missing" };
        return *told == (404, Some(reason));
    }
    let same_revision = found["_rev"].as_str() == state.revision.as_deref();
    assert!(!same_revision || state.has_content_of(found, client), "{found} should be {state:?}");
    same_revision
}

/// Whether what was found is the state that was sent and not acknowledged.
fn maybe_is_in(state: &State, found: &Value, told: &(u16, Option<&str>), client: u64) -> bool {
    if state.is_present() { state.has_content_of(found, client) } else { told.1 == Some("deleted") }
}
