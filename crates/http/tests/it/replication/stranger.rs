//! Servers that answer what no well-meaning one does.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One way to answer.
#[derive(Clone, Copy)]
pub(crate) struct Harm {
    /// What it is.
    pub(crate) name: &'static str,
    /// The address that is answered so; others are answered as a small database would.
    at: &'static str,
    answer: Answer,
}

#[derive(Clone, Copy)]
enum Answer {
    /// These bytes, status line and all.
    Raw(&'static str),
    /// A body.
    Json(&'static str),
    /// This before and behind many of that.
    Repeated(&'static str, &'static str, usize),
    /// A body that never ends.
    Endless,
}

const DEEP: usize = 100_000;

pub(crate) const HARMS: [Harm; 18] = [
    Harm { name: "another protocol", at: "/db", answer: Answer::Raw("220 mail.example ESMTP\r\n") },
    Harm { name: "nothing", at: "/db", answer: Answer::Raw("") },
    Harm { name: "a list", at: "/db", answer: Answer::Json("[]") },
    Harm { name: "no database", at: "/db", answer: Answer::Json("{}") },
    Harm { name: "no JSON", at: "/db/_changes", answer: Answer::Json("<html>") },
    Harm { name: "deep JSON", at: "/db/_changes", answer: Answer::Repeated("{\"results\":", "[", DEEP) },
    Harm { name: "deep members", at: "/db", answer: Answer::Repeated("", "{\"a\":", DEEP) },
    Harm { name: "no end of changes", at: "/db/_changes", answer: Answer::Endless },
    Harm { name: "no end of a database", at: "/db", answer: Answer::Endless },
    Harm { name: "no end of documents", at: "/db/_bulk_get", answer: Answer::Endless },
    Harm {
        name: "more changes than asked for",
        at: "/db/_changes",
        answer: Answer::Repeated(
            "{\"results\":[",
            "{\"id\":\"x\",\"seq\":1,\"changes\":[{\"rev\":\"1-a\"}]},",
            20_000,
        ),
    },
    Harm {
        name: "a document that nobody asked for",
        at: "/db/_bulk_get",
        answer: Answer::Json(
            "{\"results\":[{\"id\":\"_design/evil\",\"docs\":[{\"ok\":{\"_id\":\"_design/evil\",\"_rev\":\"1-a\"}}]}]}",
        ),
    },
    Harm {
        name: "another document under the name",
        at: "/db/_bulk_get",
        answer: Answer::Json(
            "{\"results\":[{\"id\":\"x\",\"docs\":[{\"ok\":{\"_id\":\"_local/evil\",\"_rev\":\"1-a\"}}]}]}",
        ),
    },
    Harm {
        name: "a bomb",
        at: "/db/_bulk_get",
        answer: Answer::Raw(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\u{1f}\u{1}",
        ),
    },
    Harm {
        name: "redirects in a circle",
        at: "/db",
        answer: Answer::Raw("HTTP/1.1 302 Found\r\nLocation: /db\r\nContent-Length: 0\r\n\r\n"),
    },
    Harm {
        name: "a redirect to what the wire alone reaches",
        at: "/db",
        answer: Answer::Raw(
            "HTTP/1.1 307 Found\r\nLocation: http://169.254.169.254/stolen\r\nContent-Length: 0\r\n\r\n",
        ),
    },
    Harm {
        name: "a redirect of what was posted",
        at: "/db/_bulk_get",
        answer: Answer::Raw(
            "HTTP/1.1 302 Found\r\nLocation: http://[::1]/stolen\r\nContent-Length: 0\r\n\r\n",
        ),
    },
    Harm {
        name: "a redirect to a file",
        at: "/db",
        answer: Answer::Raw(
            "HTTP/1.1 301 Moved\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
        ),
    },
];

/// A server that answers so.
pub(crate) struct Stranger {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<String>>,
}

impl Harm {
    /// A database that is somewhere else.
    pub(crate) fn leading_to(other: SocketAddr) -> Self {
        let answer =
            format!("HTTP/1.1 307 Elsewhere\r\nLocation: http://{other}/db\r\nContent-Length: 0\r\n\r\n");
        Self { name: "elsewhere", at: "/db", answer: Answer::Raw(answer.leak()) }
    }
}

impl Stranger {
    pub(crate) async fn start(harm: Harm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, harm, Arc::clone(&shared)));
            }
        });
        Self { address, heard }
    }

    /// Everything that it was sent.
    pub(crate) fn heard(&self) -> String {
        self.heard.lock().clone()
    }
}

/// What a small database answers.
fn usual(path: &str) -> (&'static str, &'static str) {
    match path {
        "/db" => ("200 OK", "{\"db_name\":\"db\",\"update_seq\":\"1-x\"}"),
        "/db/_changes" => (
            "200 OK",
            "{\"results\":[{\"id\":\"x\",\"seq\":\"1-x\",\"changes\":[{\"rev\":\"1-a\"}]}],\"last_seq\":\"1-x\",\"pending\":0}",
        ),
        "/db/_bulk_get" => {
            ("200 OK", "{\"results\":[{\"id\":\"x\",\"docs\":[{\"ok\":{\"_id\":\"x\",\"_rev\":\"1-a\"}}]}]}")
        }
        _ => ("404 Not Found", "{\"error\":\"not_found\",\"reason\":\"missing\"}"),
    }
}

async fn serve(mut stream: TcpStream, harm: Harm, heard: Arc<Mutex<String>>) {
    let mut buffer = vec![0; 64 << 10];
    let Ok(count) = stream.read(&mut buffer).await else { return };
    let request = String::from_utf8_lossy(&buffer[..count]).into_owned();
    heard.lock().push_str(&request);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let head = |status: &str, length: usize| {
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    let mut answer = Vec::new();
    if path != harm.at {
        let (status, body) = usual(path);
        answer.extend(head(status, body.len()).bytes());
        answer.extend(body.bytes());
    } else {
        match harm.answer {
            Answer::Raw(text) => answer.extend(text.bytes()),
            Answer::Json(body) => {
                answer.extend(head("200 OK", body.len()).bytes());
                answer.extend(body.bytes());
            }
            Answer::Repeated(begin, part, times) => {
                let body = [begin, &part.repeat(times)].concat();
                answer.extend(head("200 OK", body.len()).bytes());
                answer.extend(body.bytes());
            }
            Answer::Endless => {
                let begin = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"results\":[";
                drop(stream.write_all(begin.as_bytes()).await);
                let spaces = vec![b' '; 1 << 16];
                while stream.write_all(&spaces).await.is_ok() {}
                return;
            }
        }
    }
    drop(stream.write_all(&answer).await);
}
