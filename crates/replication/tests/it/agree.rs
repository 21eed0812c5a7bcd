//! Three servers that replicate with each other, edited everywhere, broken off anywhere: in the end all agree, and nothing
//! that anybody wrote is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use proptest::prelude::*;
use scrinium_database::{Database, PurgedLeaves};
use scrinium_replication::{
    AttachmentPlace, Change, ChangesPage, ChangesRequest, ContentStream, End, EndInfo, EngineOptions,
    ErrorKind, Filter, IncomingAttachment, Missing, Refusal, ReplicationError, SourceDocument, Work,
};
use serde_json::{Value, json};

use crate::ground::{Ground, bring, everything, leaves, options, replication, try_put};

/// An end that breaks off at the calls that a list names: before the work is done, or after, when nobody hears of it.
pub(crate) struct Breaking {
    pub(crate) end: Arc<dyn End>,
    pub(crate) calls: Arc<AtomicU32>,
    pub(crate) breaks: Arc<BTreeSet<u32>>,
}

impl Breaking {
    async fn broken<T>(&self, work: Work<'_, T>) -> Result<T, ReplicationError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let broken = || ReplicationError::new(ErrorKind::Unavailable, "The wire was cut.");
        if !self.breaks.contains(&call) {
            return work.await;
        }
        if call.is_multiple_of(2) {
            drop(work.await);
        }
        Err(broken())
    }
}

impl End for Breaking {
    fn shown(&self) -> &str {
        self.end.shown()
    }

    fn identity(&self) -> String {
        self.end.identity()
    }

    fn takes_encoded(&self) -> bool {
        self.end.takes_encoded()
    }

    fn info(&self) -> Work<'_, EndInfo> {
        Box::pin(self.broken(self.end.info()))
    }

    fn create(&self) -> Work<'_, ()> {
        Box::pin(self.broken(self.end.create()))
    }

    fn filter_code<'a>(&'a self, filter: &'a str) -> Work<'a, Option<String>> {
        Box::pin(self.broken(self.end.filter_code(filter)))
    }

    fn checkpoint<'a>(&'a self, name: &'a str) -> Work<'a, Option<Value>> {
        Box::pin(self.broken(self.end.checkpoint(name)))
    }

    fn put_checkpoint<'a>(&'a self, name: &'a str, checkpoint: Value) -> Work<'a, ()> {
        Box::pin(self.broken(self.end.put_checkpoint(name, checkpoint)))
    }

    fn changes<'a>(&'a self, request: &'a ChangesRequest) -> Work<'a, ChangesPage> {
        Box::pin(self.broken(self.end.changes(request)))
    }

    fn difference<'a>(&'a self, changes: &'a [Change]) -> Work<'a, Vec<Missing>> {
        Box::pin(self.broken(self.end.difference(changes)))
    }

    fn documents<'a>(&'a self, wanted: &'a [Missing]) -> Work<'a, Vec<SourceDocument>> {
        Box::pin(self.broken(self.end.documents(wanted)))
    }

    fn attachment<'a>(&'a self, place: &'a AttachmentPlace, offset: u64) -> Work<'a, Box<dyn ContentStream>> {
        Box::pin(async move {
            let stream = self.broken(self.end.attachment(place, offset)).await?;
            // Some of them break off in the middle.
            let breaks = self.calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(3);
            Ok(Box::new(BreakingContent { stream, breaks }) as Box<dyn ContentStream>)
        })
    }

    fn write<'a>(&'a self, documents: &'a [SourceDocument]) -> Work<'a, Vec<Refusal>> {
        Box::pin(self.broken(self.end.write(documents)))
    }

    fn write_with<'a>(
        &'a self,
        document: &'a SourceDocument,
        contents: Vec<IncomingAttachment>,
    ) -> Work<'a, Option<Refusal>> {
        Box::pin(self.broken(self.end.write_with(document, contents)))
    }
}

struct BreakingContent {
    stream: Box<dyn ContentStream>,
    breaks: bool,
}

impl ContentStream for BreakingContent {
    fn next_piece(&mut self) -> Work<'_, Option<Bytes>> {
        Box::pin(async move {
            let piece = self.stream.next_piece().await?;
            if !std::mem::take(&mut self.breaks) {
                return Ok(piece);
            }
            // A part of it, and then nothing: the next call finds the connection closed.
            self.stream = Box::new(Closed);
            Ok(piece.map(|piece| piece.slice(..piece.len() / 2)))
        })
    }
}

struct Closed;

impl ContentStream for Closed {
    fn next_piece(&mut self) -> Work<'_, Option<Bytes>> {
        Box::pin(std::future::ready(Err(ReplicationError::protocol("The wire was cut."))))
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Somebody edits a leaf of a document at a server, or makes it.
    Edit { server: usize, document: u8, leaf: usize, deletes: bool, attaches: bool },
    /// A revision comes from elsewhere.
    Bring { server: usize, document: u8, number: u8 },
    /// From one to another, broken off at these calls.
    Replicate { from: usize, to: usize, filtered: bool, breaks: BTreeSet<u32> },
    /// Somebody purges a document: at one server, to which replicas may bring it again, or everywhere.
    Purge { server: Option<usize>, document: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    let edit = (0..3_usize, 0..6_u8, 0..3_usize, any::<u8>()).prop_map(|(server, document, leaf, dice)| {
        Step::Edit { server, document, leaf, deletes: dice % 5 == 0, attaches: dice % 4 == 1 }
    });
    let bring = (0..3_usize, 0..6_u8, 0..4_u8).prop_map(|(server, document, number)| Step::Bring {
        server,
        document,
        number,
    });
    let breaks = proptest::collection::btree_set(0..30_u32, 0..4);
    let replicate =
        (0..3_usize, 1..3_usize, any::<bool>(), breaks).prop_map(|(from, further, filtered, breaks)| {
            Step::Replicate { from, to: (from + further) % 3, filtered, breaks }
        });
    let purge = (proptest::option::of(0..3_usize), 0..6_u8)
        .prop_map(|(server, document)| Step::Purge { server, document });
    prop_oneof![8 => edit, 2 => bring, 6 => replicate, 1 => purge]
}

struct World {
    ground: Ground,
    databases: Vec<Arc<Database>>,
    /// Leaves that somebody wrote, and what their bodies are, unless they were edited.
    written: BTreeMap<(String, String), Value>,
    edits: u64,
    /// Something was purged: checkpoints do not tell any more what each server has.
    is_purged: bool,
}

/// Whether a leaf is a revision, or goes on from it.
fn goes_on(leaf: &Value, revision: &str) -> bool {
    let (start, digest) = revision.split_once('-').unwrap();
    let history = &leaf["_revisions"];
    let back = history["start"].as_u64().unwrap().checked_sub(start.parse().unwrap());
    back.is_some_and(|back| history["ids"][usize::try_from(back).unwrap()] == digest)
}

impl World {
    fn new() -> Self {
        let ground = Ground::new();
        let databases = ["a", "b", "c"].map(|name| ground.create(name)).to_vec();
        Self { ground, databases, written: BTreeMap::new(), edits: 0, is_purged: false }
    }

    async fn carry_out(&mut self, step: Step) {
        match step {
            Step::Edit { server, document, leaf, deletes, attaches } => {
                let id = format!("doc{document}");
                let database = Arc::clone(&self.databases[server]);
                self.edits += 1;
                // What a replication had begun to write when it broke off may be stored a moment later.
                let mut stored = None;
                for _ in 0..100 {
                    let json = self.edited(&leaves(&database, &id), &id, leaf, (deletes, attaches));
                    stored = try_put(&database, &json).await;
                    if stored.is_some() {
                        break;
                    }
                }
                self.note(&database, &id, &stored.unwrap());
            }
            Step::Bring { server, document, number } => {
                let id = format!("doc{document}");
                let revision = format!("1-{number:032x}");
                let json = json!({"_id": id, "_rev": revision, "brought": number});
                bring(&self.databases[server].clone(), json).await;
                self.note(&self.databases[server].clone(), &id, &revision);
            }
            Step::Purge { server, document } => self.purge(server, &format!("doc{document}")),
            Step::Replicate { from, to, filtered, breaks } => {
                drop(self.replicate(from, to, filtered, breaks).await);
            }
        }
    }

    /// The next revision of a leaf, or the first of a document.
    fn edited(&self, present: &[Value], id: &str, leaf: usize, (deletes, attaches): (bool, bool)) -> Value {
        let mut json = json!({"_id": id, "edit": self.edits});
        if let Some(base) = (!present.is_empty()).then(|| &present[leaf % present.len()]) {
            json["_rev"] = base["_rev"].clone();
            // Its attachments stay.
            for (name, _) in base["_attachments"].as_object().into_iter().flatten() {
                json["_attachments"][name] = json!({"stub": true});
            }
        }
        if deletes {
            json["_deleted"] = true.into();
            json["_attachments"] = json!({});
        } else if attaches {
            let content = vec![u8::try_from(self.edits % 250).unwrap(); 90_000];
            let content = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, content);
            json["_attachments"][format!("a{}", self.edits)] =
                json!({"content_type": "a/b", "data": content});
        }
        json
    }

    /// What was purged is not asked for at the end, but for what another server goes on from.
    fn purge(&mut self, server: Option<usize>, id: &str) {
        for (place, database) in self.databases.iter().enumerate() {
            if server.is_none_or(|server| server == place) {
                let leaves = leaves(database, id);
                let revisions = leaves.iter().map(|leaf| leaf["_rev"].as_str().unwrap().to_owned()).collect();
                database.purge_leaves(vec![PurgedLeaves { id: id.to_owned(), revisions }]).unwrap();
            }
        }
        self.is_purged = true;
        let databases = self.databases.clone();
        self.written.retain(|(of, revision), _| {
            of != id
                || databases
                    .iter()
                    .any(|database| leaves(database, id).iter().any(|leaf| goes_on(leaf, revision)))
        });
    }

    fn note(&mut self, database: &Arc<Database>, id: &str, revision: &str) {
        for leaf in leaves(database, id) {
            if leaf["_rev"] == revision {
                self.written.insert((id.to_owned(), revision.to_owned()), leaf);
            }
        }
    }

    async fn replicate(
        &self,
        from: usize,
        to: usize,
        filtered: bool,
        breaks: BTreeSet<u32>,
    ) -> Result<(), ReplicationError> {
        self.replicate_named((from, to), filtered, breaks, "").await
    }

    async fn replicate_named(
        &self,
        (from, to): (usize, usize),
        filtered: bool,
        breaks: BTreeSet<u32>,
        name: &str,
    ) -> Result<(), ReplicationError> {
        let (calls, breaks) = (Arc::new(AtomicU32::new(0)), Arc::new(breaks));
        let breaking = |place: usize| {
            let end = self.ground.end("admin", ["a", "b", "c"][place]);
            Arc::new(Breaking { end, calls: Arc::clone(&calls), breaks: Arc::clone(&breaks) })
        };
        let mut replication = replication(breaking(from), breaking(to));
        replication.options = EngineOptions { page_changes: 2, pages_at_once: 2, ..options() };
        if filtered {
            replication.filter = Arc::new(Filter::Selector(json!({"_id": {"$lt": "doc3"}})));
            replication.name.push_str("-filtered");
        }
        replication.name.push_str(name);
        Arc::new(replication).run().await.map(drop)
    }

    /// Everything everywhere, until nothing changes.
    async fn settle(&self) {
        for _ in 0..2 {
            for (from, to) in [(0, 1), (1, 2), (2, 0), (0, 2), (2, 1), (1, 0)] {
                let name = if self.is_purged { "-from-the-beginning" } else { "" };
                self.replicate_named((from, to), false, BTreeSet::new(), name).await.unwrap();
            }
        }
    }

    fn check(&self) {
        let all = everything(&self.databases[0]);
        for database in &self.databases[1..] {
            assert_eq!(everything(database), all, "not all servers agree");
        }
        // Each leaf that was written is there as it was written, or something that goes on from it is.
        let found: BTreeMap<String, Vec<Value>> = all.into_iter().collect();
        for ((id, revision), body) in &self.written {
            let leaves = found.get(id).expect("the document is there");
            assert!(leaves.iter().any(|leaf| goes_on(leaf, revision)), "{id} {revision} is lost");
            if let Some(leaf) = leaves.iter().find(|leaf| leaf["_rev"] == *revision) {
                assert_eq!(leaf, body);
            }
        }
    }
}

fn run(steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::new();
        for step in steps {
            world.carry_out(step).await;
        }
        world.settle().await;
        world.check();
    });
}

fn cases() -> u32 {
    std::env::var("SCRINIUM_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn three_servers_agree_whatever_broke_off(steps in proptest::collection::vec(step(), 1..24)) {
        run(steps);
    }
}
