//! HTTP/1.1 as far as the laboratory speaks it, written by hand, so that answers can be wrong on the wire too:
//! broken off, sent twice, or byte by byte.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::{Method, Uri};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::{Faults, Shared};

/// A request, whole.
pub struct Asked {
    pub method: Method,
    pub uri: Uri,
    pub authorization: Option<String>,
    pub body: Vec<u8>,
}

/// How an answer is put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Whole,
    Truncated,
    Doubled,
    Dribbled(Duration),
}

/// One reading of a document, as the server itself has measured it.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// From when the request was there until the last byte was written.
    pub took: Duration,
    pub delivery: Delivery,
    pub status: u16,
}

/// Pieces of a dribbled answer.
const PIECES: usize = 20;

pub async fn serve(stream: TcpStream, shared: Arc<Shared>, faults: Faults) {
    let mut gone = shared.gone.subscribe();
    tokio::select! {
        ended = serve_all(stream, Arc::clone(&shared), faults) => drop(ended),
        _ = gone.wait_for(|gone| *gone) => {}
    }
}

async fn serve_all(stream: TcpStream, shared: Arc<Shared>, faults: Faults) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    while let Some(asked) = read_request(&mut read).await? {
        let came = Instant::now();
        let is_reading = asked.method == Method::GET && asked.uri.path().contains("/lab-");
        let number = if is_reading { shared.readings.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        let (status, kind, body) = super::answer(asked, &shared, faults, number).await;
        let nth = |every: Option<u64>| is_reading && every.is_some_and(|every| number.is_multiple_of(every));
        let delivery = match faults.dribbled {
            _ if nth(faults.truncated) => Delivery::Truncated,
            _ if nth(faults.doubled) => Delivery::Doubled,
            Some((every, time)) if nth(Some(every)) => Delivery::Dribbled(time),
            _ => Delivery::Whole,
        };
        let goes_on = deliver(&mut write, status, kind, &body, delivery).await?;
        if is_reading && !faults.forgetful {
            shared.served.lock().push(Served { took: came.elapsed(), delivery, status });
        }
        if !goes_on {
            break;
        }
    }
    Ok(())
}

async fn read_request(read: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Option<Asked>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match read.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, uri) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let header = |wanted: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
        })
    };
    let length = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    read.read_exact(&mut body).await?;
    Ok(Some(Asked {
        method: method.parse().unwrap(),
        uri: uri.parse().unwrap(),
        authorization: header("authorization"),
        body,
    }))
}

/// Returns whether the connection can be used again.
async fn deliver(
    write: &mut OwnedWriteHalf,
    status: u16,
    kind: &str,
    body: &[u8],
    delivery: Delivery,
) -> std::io::Result<bool> {
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    let whole = [head.as_bytes(), body].concat();
    match delivery {
        Delivery::Whole => write.write_all(&whole).await?,
        Delivery::Truncated => write.write_all(&whole[..whole.len() - body.len() / 2]).await?,
        Delivery::Doubled => write.write_all(&[whole.as_slice(), &whole].concat()).await?,
        Delivery::Dribbled(time) => {
            for piece in whole.chunks(whole.len().div_ceil(PIECES)) {
                tokio::time::sleep(time / u32::try_from(PIECES).unwrap()).await;
                write.write_all(piece).await?;
            }
        }
    }
    Ok(delivery != Delivery::Truncated)
}

/// JSON as bytes.
pub fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}
