//! Many attachments and a large one replicated from one server to another, and broken off: the wire is cut, and the target is
//! killed. In the end all is there, and little came twice.
//!
//! `SCRINIUM_DOCUMENTS=10000 SCRINIUM_ATTACHMENT_BYTES=200000 SCRINIUM_LARGE_BYTES=1000000000` makes it three gigabytes.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scrinium_fault::noise;
use serde_json::{Value, json};

use crate::common::{Client, PASSWORD, small_with, start_with};

/// However loaded the machine is.
const WITHIN: Duration = Duration::from_secs(170);

/// No less than this comes in a second, in a build that checks everything.
const BYTES_PER_SECOND: u64 = 1_000_000;

/// What a document takes on the wire next to its attachment, with what is asked.
const BESIDE_BYTES: u64 = 8 << 10;

/// A wire between two servers, which counts what comes from the one that is asked, and which is cut where a list says.
struct Wire {
    address: SocketAddr,
    bytes: AtomicU64,
    cuts: Mutex<Vec<u64>>,
    connections: Mutex<Vec<TcpStream>>,
}

impl Wire {
    fn to(server: SocketAddr) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wire = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            bytes: AtomicU64::new(0),
            cuts: Mutex::default(),
            connections: Mutex::default(),
        });
        let accepting = Arc::clone(&wire);
        std::thread::spawn(move || {
            for asking in listener.incoming().map_while(Result::ok) {
                let Ok(asked) = TcpStream::connect(server) else { continue };
                accepting.connect(&asking, &asked);
            }
        });
        wire
    }

    fn connect(self: &Arc<Self>, asking: &TcpStream, asked: &TcpStream) {
        let copies = |stream: &TcpStream| stream.try_clone().unwrap();
        self.connections.lock().unwrap().extend([copies(asking), copies(asked)]);
        let (mut from, mut to) = (copies(asking), copies(asked));
        std::thread::spawn(move || {
            drop(std::io::copy(&mut from, &mut to));
            drop(to.shutdown(Shutdown::Both));
        });
        let (wire, mut from, mut to) = (Arc::clone(self), copies(asked), copies(asking));
        std::thread::spawn(move || {
            let mut piece = vec![0; 16 << 10];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                wire.count(count as u64);
                if to.write_all(&piece[..count]).is_err() {
                    break;
                }
            }
            drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
        });
    }

    fn count(&self, count: u64) {
        let bytes = self.bytes.fetch_add(count, Ordering::SeqCst) + count;
        if self.cuts.lock().unwrap().pop_if(|cut| *cut <= bytes).is_some() {
            for connection in self.connections.lock().unwrap().drain(..) {
                drop(connection.shutdown(Shutdown::Both));
            }
        }
    }

    /// Cuts it when these parts of so many bytes more have come.
    fn cut_at(&self, parts: [f64; 2], bytes: u64) {
        let (came, [first, second]) = (self.came(), parts);
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let place = |part: f64| came + (part * bytes as f64) as u64;
        *self.cuts.lock().unwrap() = vec![place(second), place(first)];
    }

    fn came(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }

    fn was_cut(&self) -> bool {
        self.cuts.lock().unwrap().is_empty()
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().map_or(usual, |value| value.parse().unwrap())
}

fn get(client: &mut Client, path: &str) -> Value {
    let answer = client.get(path).unwrap();
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

fn attach(client: &mut Client, id: &str, content: &[u8]) {
    client.ask("PUT", &format!("/from/{id}/f"), "application/octet-stream", content).unwrap().expect(201);
}

/// Waits until a replication that a document orders is done. A cut may end it, and a kill: then it is begun again.
fn wait_for(client: &mut Client, id: &str, within: Duration) {
    let began = Instant::now();
    while get(client, &format!("/_scheduler/docs/_replicator/{id}"))["state"] != "completed" {
        assert!(began.elapsed() < within, "the replication never ends");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The attachments of all documents, by digest and length.
fn attachments(client: &mut Client, database: &str) -> Vec<Value> {
    let all = get(client, &format!("/{database}/_all_docs?include_docs=true"));
    let rows = all["rows"].as_array().unwrap();
    rows.iter().map(|row| json!([row["id"], row["value"]["rev"], row["doc"]["_attachments"]])).collect()
}

#[test]
fn attachments_that_are_broken_off_go_on_and_little_comes_twice() {
    let documents = setting("SCRINIUM_DOCUMENTS", 100);
    let each_bytes = setting("SCRINIUM_ATTACHMENT_BYTES", 100_000);
    let large_bytes = setting("SCRINIUM_LARGE_BYTES", 24_000_000);
    let batch = documents.div_ceil(2).min(1000);
    let within = WITHIN + Duration::from_secs((documents * each_bytes + large_bytes) / BYTES_PER_SECOND);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // Gigabytes take longer than a session that nobody uses.
    let long = ("SCRINIUM_SESSION__TIMEOUT", "3h".to_owned());
    let source = start_with(folders[0].path(), &small_with([long.clone()]));
    let mut from = source.client();
    from.json("PUT", "/from", &Value::Null).unwrap().expect(201);
    for number in 0..documents {
        attach(&mut from, &format!("{number:06}"), &noise(number, usize::try_from(each_bytes).unwrap()));
    }
    let wire = Wire::to(source.address());
    let settings = small_with([long, ("SCRINIUM_REPLICATION__ALLOWED_NETWORKS", "127.0.0.0/8".to_owned())]);
    let mut target = start_with(folders[1].path(), &settings);
    let url = format!("http://admin:{}@{}/from", PASSWORD.replace(' ', "%20"), wire.address);
    let order = json!({"source": url, "target": "to", "create_target": true, "worker_batch_size": batch});

    let mut to = target.client();
    to.json("PUT", "/_replicator", &Value::Null).unwrap().expect(201);
    wire.cut_at([0.1, 0.7], documents * each_bytes);
    let began = Instant::now();
    to.json("PUT", "/_replicator/many", &order).unwrap().expect(201);
    while get(&mut to, "/to")["doc_count"].as_u64().unwrap_or_default() < documents / 3 {
        assert!(began.elapsed() < within, "nothing comes");
        std::thread::sleep(Duration::from_millis(5));
    }
    target.kill();
    let mut target = start_with(folders[1].path(), &settings);
    let mut to = target.client();
    wait_for(&mut to, "many", within);
    assert!(wire.was_cut());
    assert_eq!(attachments(&mut to, "to"), attachments(&mut source.client(), "from"));
    let all_bytes = documents * (each_bytes + BESIDE_BYTES);
    let came = wire.came();
    println!(
        "{documents} documents of {each_bytes} bytes: {came} bytes came of {all_bytes}, in {:?}",
        began.elapsed()
    );
    assert!(came < all_bytes + batch * each_bytes, "{came} bytes came of {all_bytes}");

    let mut from = source.client();
    attach(&mut from, "large", &noise(7, usize::try_from(large_bytes).unwrap()));
    let began = Instant::now();
    wire.cut_at([0.33, 0.67], large_bytes);
    to.json("PUT", "/_replicator/large", &order).unwrap().expect(201);
    wait_for(&mut to, "large", within);
    assert!(wire.was_cut());
    assert_eq!(attachments(&mut to, "to"), attachments(&mut source.client(), "from"));
    let came = wire.came() - came;
    println!("an attachment of {large_bytes} bytes: {came} came, in {:?}", began.elapsed());
    // From the beginning each time, it would be twice as much.
    assert!(came < large_bytes / 3 * 5, "{came} bytes came of {large_bytes}");
    println!("the target has {} bytes of memory", target.resident_bytes());
    target.terminate(WITHIN);
}
