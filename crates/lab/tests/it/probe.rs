//! The probe against a server whose delays are known.

use std::convert::Infallible;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use scrinium_lab::probe::{ProbeObjectives, Record, prometheus_text};
use scrinium_lab_report::run::Subject;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::Command;

/// What a server does to each kind of request.
#[derive(Clone, Copy, Default)]
struct Delays {
    open_database: Duration,
    view: Duration,
    write: Duration,
    /// From a message's sending until it is in the mail file.
    delivery: Duration,
    /// Every reading of a view fails.
    broken: bool,
}

#[derive(Default)]
struct State {
    /// Milliseconds that requests of each kind took on the server, as it measured them itself.
    measured: Vec<(&'static str, f64)>,
    revision: u64,
    mail: Option<(Value, Instant)>,
    deleted: usize,
    written: Vec<String>,
}

struct Server {
    url: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    async fn start(delays: Delays) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let served = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = Arc::clone(&served);
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(request, Arc::clone(&state), delays));
                    drop(
                        hyper::server::conn::http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service)
                            .await,
                    );
                });
            }
        });
        Self { url, state }
    }

    fn sum_ms(&self, kind: &str) -> f64 {
        self.state.lock().measured.iter().filter(|(name, _)| *name == kind).map(|(_, ms)| ms).sum()
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
    delays: Delays,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let began = Instant::now();
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let path = head.uri.path().to_owned();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let kind = match (&head.method, path.as_str()) {
        (&Method::PUT, _) => "write",
        (_, path) if path.contains("/_view/") => "view",
        (_, "/shared") => "open",
        _ => "other",
    };
    tokio::time::sleep(match kind {
        "write" => delays.write,
        "view" => delays.view,
        "open" => delays.open_database,
        _ => Duration::ZERO,
    })
    .await;
    let (status, answer) = if path.contains("_changes") {
        changes(&state, delays).await
    } else {
        plain(&head.method, &path, &query, body, &state, delays)
    };
    state.lock().measured.push((kind, began.elapsed().as_secs_f64() * 1000.0));
    Ok(Response::builder().status(status).body(Full::new(Bytes::from(answer.to_string()))).unwrap())
}

/// The message, when it has arrived.
async fn changes(state: &Mutex<State>, delays: Delays) -> (u16, Value) {
    let sent = state.lock().mail.clone();
    let Some((memo, sent)) = sent else { return (200, json!({"results": [], "last_seq": "1"})) };
    tokio::time::sleep_until((sent + delays.delivery).into()).await;
    (200, json!({"results": [{"id": "delivered", "doc": memo}], "last_seq": "2"}))
}

fn plain(
    method: &Method,
    path: &str,
    query: &str,
    body: Value,
    state: &Mutex<State>,
    delays: Delays,
) -> (u16, Value) {
    let mut state = state.lock();
    match (method, path) {
        (&Method::GET, path) if path.contains("/_view/") && delays.broken => {
            (500, json!({"error": "broken"}))
        }
        (&Method::GET, path) if path.contains("/_view/") => {
            let limit = if query.contains("limit=0") { 0 } else { 30 };
            let rows: Vec<Value> = (0..limit).map(|row| json!({"id": format!("document{row}")})).collect();
            (200, json!({"total_rows": 500, "rows": rows}))
        }
        (&Method::GET, "/shared") => (200, json!({"db_name": "shared"})),
        (&Method::GET, path) if path.ends_with("delivered") => {
            let mut memo = state.mail.clone().map(|(memo, _)| memo).unwrap_or_default();
            memo["_rev"] = json!("1-1");
            (200, memo)
        }
        (&Method::GET, path) if path.contains("/document") => {
            (200, json!({"_id": path.rsplit('/').next().unwrap(), "_rev": "1-1"}))
        }
        (&Method::GET, path) if path.ends_with("lab-probe-ada") => (404, json!({"error": "not_found"})),
        (&Method::GET, _) => (200, json!({"update_seq": "1-x"})),
        (&Method::PUT, path) if path.contains("mail") => {
            state.mail = Some((body, Instant::now()));
            (201, json!({"ok": true}))
        }
        (&Method::PUT, path) => {
            // Anyone who writes without the last revision has not kept it.
            let right = state.revision == 0 || body["_rev"] == json!(format!("{}-1", state.revision));
            state.revision += 1;
            state.written.push(path.to_owned());
            let revision = format!("{}-1", state.revision);
            if right {
                (201, json!({"ok": true, "rev": revision}))
            } else {
                (409, json!({"error": "conflict"}))
            }
        }
        _ => {
            state.deleted += 1;
            (200, json!({"ok": true}))
        }
    }
}

async fn probe(server: &Server, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"));
    command.args(["probe", "--target", &server.url, "--user", "ada", "--password", "x"]).args(more);
    command.output().await.unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// What the probe measured is no less than what the server knows it has taken, and says in which request.
#[tokio::test(flavor = "multi_thread")]
async fn delays_are_seen_where_they_are() {
    let ms = Duration::from_millis;
    let delays =
        Delays { open_database: ms(30), view: ms(60), write: ms(90), delivery: ms(250), broken: false };
    let server = Server::start(delays).await;
    let arguments = [
        "--database",
        "shared",
        "--view",
        "design/view",
        "--mail",
        "--interval",
        "1s",
        "--for",
        "2500ms",
        "--json",
    ];
    let output = probe(&server, &arguments).await;
    let told = lines(&output);
    assert_eq!(output.status.code(), Some(0), "{told:?}");
    let (last, points) = told.split_last().unwrap();
    assert!(points.iter().all(|point| point["failure"].is_null()), "{points:?}");
    let database = &last["summary"]["database"];
    let operations = &database["operations"];
    let total = |name: &str| {
        operations[name]["mean_ms"].as_f64().unwrap() * operations[name]["count"].as_f64().unwrap()
    };
    for (probed, kind) in
        [(total("OPEN_DB"), "open"), (total("OPEN_COLLECTION") + total("READ_ENTRIES"), "view")]
    {
        assert!(probed >= 0.999 * server.sum_ms(kind), "{kind}: {probed} and {}", server.sum_ms(kind));
    }
    let mean = |value: &Value| value["mean_ms"].as_f64().unwrap();
    let parts: f64 = operations.as_object().unwrap().values().map(mean).sum();
    if database["waited"] == 0 {
        assert!((parts - mean(&database["response"])).abs() < 0.02 * parts, "{database}");
    }
    assert!(mean(&last["summary"]["mail"]["operations"]["DELIVER"]) > 100.0, "{last}");
    assert!(mean(&last["summary"]["mail"]["response"]) >= 250.0, "{last}");
    let state = server.state.lock();
    assert!(
        state.written.iter().all(|path| path == "/shared/lab-probe-ada"),
        "only its own: {:?}",
        state.written
    );
    assert!(state.deleted > 0, "messages are taken away again");
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_objectives_and_failures_end_with_99() {
    let slow = Server::start(Delays { view: Duration::from_millis(50), ..Delays::default() }).await;
    let arguments =
        ["--database", "shared", "--view", "design/view", "--interval", "200ms", "--for", "500ms"];
    let output = probe(&slow, &[&arguments[..], &["--max-p99", "20"]].concat()).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(99), "{text}");
    assert!(
        text.contains("MISSED: 99th percentile of response (database)") && text.contains("OPEN_COLLECTION"),
        "{text}"
    );

    let broken = Server::start(Delays { broken: true, ..Delays::default() }).await;
    let output = probe(&broken, &arguments).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(99), "{text}");
    assert!(text.contains("FAILED") && text.contains("status 500"), "{text}");

    for (arguments, word) in [
        (vec!["--interval", "1s"], "say what is to be probed"),
        (vec!["--database", "shared"], "--view"),
        (vec!["--mail", "--interval", "0s"], "interval"),
    ] {
        let output = probe(&slow, &arguments).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(word), "{said}");
    }
}

/// A load run that was killed left its probe at work for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_ends_when_its_reader_is_gone() {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let server = Server::start(Delays::default()).await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"))
        .args(["probe", "--json", "--target", &server.url, "--user", "ada", "--password", "x"])
        .args(["--database", "shared", "--view", "design/view", "--interval", "50ms"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut rounds = BufReader::new(child.stdout.take().unwrap()).lines();
    rounds.next_line().await.unwrap().unwrap();
    drop(rounds);
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    assert_eq!(ended.expect("it goes on").unwrap().code(), Some(0));
}

/// Who watches a server for ever into a file continues when its disk is full.
#[tokio::test(flavor = "multi_thread")]
async fn a_probe_goes_on_where_its_output_does_not_fit() {
    let server = Server::start(Delays::default()).await;
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"))
        .args(["probe", "--json", "--target", &server.url, "--user", "ada", "--password", "x"])
        .args(["--database", "shared", "--view", "design/view", "--interval", "50ms"])
        .stdout(full)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let rounds = async {
        while server.state.lock().revision < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), rounds).await.expect("it has ended");
    child.kill().await.unwrap();
}

/// A scraper finds on the probe's port what the probe has seen.
#[tokio::test(flavor = "multi_thread")]
async fn figures_are_served_to_prometheus() {
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    let server = Server::start(Delays::default()).await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_scrinium-lab"))
        .args([
            "probe",
            "--target",
            &server.url,
            "--user",
            "ada",
            "--database",
            "shared",
            "--view",
            "design/view",
        ])
        .args(["--interval", "100ms", "--prometheus", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = talk.next_line().await.unwrap().unwrap();
    let address = said.split("http://").nth(1).unwrap().trim_end_matches("/metrics").to_owned();
    let mut rounds = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        rounds.next_line().await.unwrap().unwrap();
    }
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("scrinium_probe_up 1"), "{text}");
    assert!(
        text.contains(
            "scrinium_probe_operation_seconds_count{subject=\"database\",operation=\"UPDATE_NOTE\"}"
        ),
        "{text}"
    );
    child.kill().await.unwrap();
}

/// Names and forms that scrapers rely on.
#[test]
fn the_text_for_prometheus_is_as_it_was() {
    let mut record = Record::default();
    for (response_ms, failure) in [(40.0, None), (60.0, None), (1.0, Some("no answer".to_owned()))] {
        record.add(&scrinium_lab::probe::Point {
            subject: Subject::Database,
            at_unix_ms: 0,
            response_ms,
            operations: vec![("OPEN_DB".to_owned(), response_ms)],
            failure,
        });
    }
    let objectives =
        ProbeObjectives { average_ms: Some(45.0), p99_ms: None, mail_p99_ms: None, errors_percent: 50.0 };
    let text = prometheus_text(&record, &objectives);
    let path = format!("{}/tests/golden/probe-prometheus.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap());
}
