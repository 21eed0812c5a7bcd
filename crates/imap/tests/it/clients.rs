//! Clients that people have, against a server of the small world on a loopback socket. Those that are not installed are left out: Python's own
//! is there wherever Python is; IMAPClient where `python3` finds it (PYTHONPATH), ImapFlow where NODE_PATH has it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scrinium_imap::{Peer, ServerOptions, ServerSession, Watching};

use crate::world::World;

/// A connection may take this long.
const PATIENCE: Duration = Duration::from_secs(30);

fn now_ms(begun: Instant) -> u64 {
    crate::world::NOW_MS + u64::try_from(begun.elapsed().as_millis()).unwrap()
}

/// One connection, until it is closed.
fn serve(mut stream: TcpStream, world: &Mutex<World>, number: usize) -> std::io::Result<()> {
    let begun = Instant::now();
    let mut options = ServerOptions::new("imap.test");
    options.requires_tls = false;
    options.is_local = true;
    let mut session = ServerSession::new(Arc::new(options), Peer::default(), None, now_ms(begun));
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    let mut waiting: Vec<u8> = Vec::new();
    while begun.elapsed() < PATIENCE {
        let request = session.next(now_ms(begun));
        let output = session.take_output();
        stream.write_all(&output)?;
        if let Some(request) = request {
            let answer = world.lock().unwrap().answer(number, request);
            session.answer(answer, now_ms(begun));
            continue;
        }
        if session.is_closed() {
            break;
        }
        if !output.is_empty() {
            continue;
        }
        if waiting.is_empty() {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => waiting.extend_from_slice(&buffer[..count]),
                // Nothing came: somebody else may have changed something.
                Err(_) if session.watches() != Watching::Nothing => session.wake(now_ms(begun)),
                Err(_) => {}
            }
        }
        let taken = session.receive(&waiting, now_ms(begun));
        waiting.drain(..taken);
    }
    session.disconnected();
    while let Some(request) = session.next(now_ms(begun)) {
        let answer = world.lock().unwrap().answer(number, request);
        session.answer(answer, now_ms(begun));
    }
    Ok(())
}

/// A server with a world of its own; its port. It ends with the test.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = Arc::new(Mutex::new(World::new()));
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate().take(64) {
            let world = Arc::clone(&world);
            let Ok(stream) = stream else { break };
            std::thread::spawn(move || serve(stream, &world, number));
        }
    });
    port
}

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name).to_string_lossy().into_owned()
}

fn is_there(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn run(program: &str, name: &str) {
    let output = Command::new(program).arg(script(name)).arg(server().to_string()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.ends_with("done\n"), "{said}\n{complained}");
}

#[test]
fn pythons_own_client_gets_what_it_asks_for() {
    if !is_there("python3", &["-c", "import imaplib"]) {
        eprintln!("left out: there is no python3");
        return;
    }
    run("python3", "imaplib_sequence.py");
}

#[test]
fn imapclient_gets_what_it_asks_for() {
    if !is_there("python3", &["-c", "import imapclient"]) {
        eprintln!("left out: python3 has no imapclient (pip install imapclient)");
        return;
    }
    run("python3", "imapclient_sequence.py");
}

#[test]
fn imapflow_gets_what_it_asks_for() {
    let find = "require('module').createRequire(process.env.NODE_PATH + '/')('imapflow')";
    if std::env::var_os("NODE_PATH").is_none() || !is_there("node", &["-e", find]) {
        eprintln!("left out: NODE_PATH has no imapflow (npm install imapflow)");
        return;
    }
    run("node", "imapflow_sequence.mjs");
}
