//! Scrinium with people, a port for SMTP and one for LMTP.

use std::net::SocketAddr;

use scrinium_bench::client::Connection;
use scrinium_bench::process::used_ticks;
use scrinium_bench::server::Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{DOMAIN, PEOPLE, free_port, person};

pub struct Ours {
    pub smtp: SocketAddr,
    pub lmtp: SocketAddr,
    connection: Connection,
    server: Server,
}

impl Ours {
    pub fn start(more: &[(&str, &str)]) -> Self {
        let mut ours = Self::start_in(scrinium_bench::folder(), more);
        let people: Vec<Value> = (0..PEOPLE)
            .map(|number| {
                let name = person(number);
                json!({"_id": format!("person:{name}"), "Form": "Person", "ShortName": name, "FullName": [name]})
            })
            .collect();
        ours.request("POST", "/directory/_bulk_docs", &json!({"docs": people}));
        ours
    }

    /// On a folder that a server has used before, which has people.
    pub fn start_in(folder: TempDir, more: &[(&str, &str)]) -> Self {
        let [smtp, lmtp] = [free_port(), free_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let (listen_smtp, listen_lmtp) = (smtp.to_string(), lmtp.to_string());
        let own = [
            ("SCRINIUM_SMTP__LISTEN", listen_smtp.as_str()),
            ("SCRINIUM_LMTP__LISTEN", &listen_lmtp),
            ("SCRINIUM_MAIL__DOMAINS", DOMAIN),
        ];
        let server = Server::start_in(folder, env!("CARGO_BIN_EXE_scrinium"), &[&own, more].concat());
        let connection = server.connect();
        Self { smtp, lmtp, connection, server }
    }

    /// Messages that were put into mail files since the start.
    pub fn delivered(&mut self) -> u64 {
        self.count("Mail.Delivered")
    }

    /// A statistic that counts.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it counts")]
    pub fn count(&mut self, name: &str) -> u64 {
        Server::statistic(&mut self.connection, name) as u64
    }

    /// What the administrator is answered.
    pub fn request(&mut self, method: &str, path: &str, body: &Value) -> Value {
        serde_json::from_str(self.connection.request(method, path, &body.to_string())).unwrap()
    }

    /// Kills it with SIGKILL, and gives its folder as it is then.
    pub fn kill(self) -> TempDir {
        self.server.kill()
    }

    /// Has it end in order, and gives its folder.
    pub fn stop(self) -> TempDir {
        self.server.stop()
    }

    /// Processor time so far, in hundredths of a second.
    pub fn ticks(&self) -> u64 {
        used_ticks(self.server.process_id())
    }

    pub const fn server(&self) -> &Server {
        &self.server
    }
}
