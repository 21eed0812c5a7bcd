//! A PostgreSQL of Debian's in a fresh folder, on a socket of its own: no port, no service, nothing of the machine's.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use scrinium_bench::discussion::document;
use scrinium_bench::folder;
use scrinium_bench::process::{Process, command};
use tempfile::TempDir;

/// Where Debian puts its versions; `SCRINIUM_POSTGRES` names another folder of programs.
const VERSIONS: &str = "/usr/lib/postgresql";
/// What runs the server where we are root, which PostgreSQL refuses to be.
const USER: &str = "postgres";
/// Ours is as large.
pub(crate) const BUDGET_MB: u32 = 1024;

/// How the server is set up: as safe as it is by default, with as much memory as ours, and room so that checkpoints do
/// not come into a round.
fn settings() -> Vec<String> {
    let budget = format!("{BUDGET_MB}MB");
    [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("shared_buffers", &budget),
        ("maintenance_work_mem", &budget),
        ("max_parallel_maintenance_workers", "2"),
        ("max_wal_size", "8GB"),
        ("checkpoint_timeout", "30min"),
        ("random_page_cost", "1.1"),
        ("jit", "off"),
        ("max_connections", "100"),
        ("listen_addresses", ""),
    ]
    .iter()
    .map(|(name, value)| format!("{name}={value}"))
    .collect()
}

/// The server, which ends when this is dropped.
pub(crate) struct Postgres {
    programs: PathBuf,
    /// `PostgreSQL 15.18`
    pub(crate) name: String,
    // Ends before its folder goes.
    _process: Process,
    folder: TempDir,
}

/// What a script of pgbench measured.
pub(crate) struct Measured {
    pub(crate) each_second: f64,
    /// In microseconds.
    pub(crate) took: Vec<f64>,
}

impl Postgres {
    pub(crate) fn start() -> Self {
        let programs = programs();
        let folder = folder();
        let is_root = rustix::process::geteuid().is_root();
        let user = is_root.then_some(USER);
        if is_root {
            let owned = Command::new("chown").arg(USER).arg(folder.path()).status();
            assert!(owned.is_ok_and(|status| status.success()), "there must be a user {USER}");
        }
        let data = folder.path().join("data");
        let made = command(programs.join("initdb"), user)
            .args(["--username=bench", "--auth=trust", "--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed; {USER} must be able to reach SCRINIUM_BENCH_DIR");
        let mut postgres = command(programs.join("postgres"), user);
        postgres.arg("-D").arg(&data).arg("-k").arg(folder.path());
        for setting in settings() {
            postgres.arg("-c").arg(setting);
        }
        postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Asked this way it ends at once, with its children.
        let process = Process::start(&mut postgres, Signal::QUIT);
        let mut postgres = Self { programs, name: String::new(), _process: process, folder };
        postgres.name = postgres.wait();
        postgres
    }

    /// Waits until it answers; gives its name.
    fn wait(&self) -> String {
        let began = Instant::now();
        loop {
            let mut psql = self.client("psql");
            let output = psql.args(["-Atc", "SHOW server_version"]).stderr(Stdio::null()).output().unwrap();
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            if let Some(number) = version.split_whitespace().next() {
                return format!("PostgreSQL {number}");
            }
            assert!(began.elapsed() < Duration::from_secs(60), "PostgreSQL did not start");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn client(&self, program: &str) -> Command {
        let mut command = command(self.programs.join(program), None);
        command.env("PGHOST", self.folder.path()).env("PGUSER", "bench").env("PGDATABASE", "postgres");
        command.env_remove("PGPORT").stdin(Stdio::null()).stderr(Stdio::inherit());
        command
    }

    /// Runs statements; the first error ends them. Gives what they print.
    pub(crate) fn run(&self, statements: &str) -> String {
        let mut psql = self.client("psql");
        let output = psql.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statements]).output().unwrap();
        assert!(output.status.success(), "{statements}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Adds the documents of these numbers to the table.
    pub(crate) fn store(&self, from: u64, to: u64) {
        let mut psql = self.client("psql");
        psql.args(["-qX", "-v", "ON_ERROR_STOP=1", "-c", "COPY documents (id, body) FROM STDIN"]);
        let mut child = psql.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = std::io::BufWriter::new(child.stdin.take().unwrap());
        for number in from..to {
            // A backslash and what lies beyond ASCII would have to be told to COPY; there is neither.
            writeln!(input, "{}\t{}", id(number), document(number)).unwrap();
        }
        drop(input);
        assert!(child.wait().unwrap().success(), "the documents could not be stored");
    }

    /// Runs a script of pgbench with prepared statements; `bound` says how often or how long, such as `-T 8`.
    pub(crate) fn measure(&self, script: &str, clients: u64, bound: [&str; 2]) -> Measured {
        let path = self.folder.path().join("script.sql");
        std::fs::write(&path, script).unwrap();
        let log = self.folder.path().join("times");
        let output = self
            .client("pgbench")
            .args(["-n", "-M", "prepared", "-j", &clients.min(2).to_string(), "-c", &clients.to_string()])
            .args(bound)
            .args(["-l", "--log-prefix"])
            .arg(&log)
            .arg("-f")
            .arg(&path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}");
        let text = String::from_utf8(output.stdout).unwrap();
        let each_second = text.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap();
        let each_second = each_second.split_whitespace().next().unwrap().parse().unwrap();
        Measured { each_second, took: times(self.folder.path()) }
    }
}

/// Reads and removes pgbench's logs: client, transaction, microseconds.
fn times(folder: &Path) -> Vec<f64> {
    let mut took = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("times.") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            took.extend(text.lines().map(|line| -> f64 { line.split(' ').nth(2).unwrap().parse().unwrap() }));
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    took
}

/// The id of a document, which a script of pgbench can tell as well; as long as ours, and as scattered.
pub(crate) fn id(number: u64) -> String {
    format!("{:0>16}", number * 2_654_435_761 % (1 << 32))
}

fn programs() -> PathBuf {
    if let Some(named) = std::env::var_os("SCRINIUM_POSTGRES") {
        return named.into();
    }
    let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().filter_map(Result::ok);
    let mut programs: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin"))
        .filter(|programs| programs.join("postgres").exists())
        .collect();
    programs.sort();
    // The one that the figures are of, or else the latest.
    let usual = programs.iter().find(|programs| programs.starts_with(Path::new(VERSIONS).join("15")));
    let found = usual.or_else(|| programs.last()).cloned();
    found.unwrap_or_else(|| {
        panic!(
            "no PostgreSQL in {VERSIONS}: install Debian's package postgresql (`scripts/bench` does as root)"
        )
    })
}
