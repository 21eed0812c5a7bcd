//! What the console answers, to people and to programs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use scrinium_backup::Target;
use scrinium_clock::{Clock, ManualClock};
use scrinium_contents::Relocation;
use scrinium_database::Properties;
use scrinium_maintenance::{CompactOrder, CompactStyle};
use scrinium_server::config::{Configuration, RunningConfiguration, Sources};
use scrinium_server::console::{
    COMMANDS, Command, Console, ConsoleError, FixupOrder, MoveAttachments, Reply, ServerParts, ServerReport,
    SettleOrder, UpdateViews,
};
use scrinium_server::{BackupOrder, RestoreOrder};
use scrinium_statistics::{Registry, Snapshot, Tasks};
use serde_json::{Map, Value, json};

struct Parts {
    statistics: Registry,
    tasks: Tasks,
    configuration: RunningConfiguration,
    compacted: Mutex<Vec<(String, CompactOrder)>>,
}

impl ServerParts for Parts {
    fn statistics(&self) -> Snapshot {
        self.statistics.snapshot()
    }

    fn outbound(&self) -> Option<scrinium_outbound::OutboundControls> {
        None
    }

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn configuration(&self) -> &RunningConfiguration {
        &self.configuration
    }

    fn report(&self) -> ServerReport {
        ServerReport {
            name: "mail.example.com".to_owned(),
            version: "0.1.0".to_owned(),
            process: 4711,
            data_dir: PathBuf::from("/srv/scrinium"),
            started: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            elapsed: Duration::from_secs(93_784),
            ports: vec!["https://127.0.0.1:5984".to_owned(), "http://[::1]:80".to_owned()],
        }
    }

    fn compact(&self, database: &str, order: &CompactOrder) -> Result<usize, String> {
        self.compacted.lock().unwrap().push((database.to_owned(), order.clone()));
        if database == "full" { Err("there is no room".to_owned()) } else { Ok(1) }
    }

    fn move_attachments(&self, order: &MoveAttachments) -> Result<(), String> {
        let all = MoveAttachments { database: "*".into(), to: Relocation::AsSet, again: false };
        let one = MoveAttachments { database: "mail/ada".into(), to: Relocation::ToVolume, again: true };
        if [all, one].contains(order) { Ok(()) } else { Err("attachments are being moved".to_owned()) }
    }

    fn reread(&self, database: &str) -> Result<(), String> {
        if ["*", "mail/ada"].contains(&database) { Ok(()) } else { Err("there is none".to_owned()) }
    }

    fn settle_conflicts(&self, order: &SettleOrder) -> Result<u64, String> {
        let wanted = SettleOrder { database: "plans".into(), rule: "{\"newest\": \"Modified\"}".into() };
        if *order == wanted { Ok(12) } else { Err(format!("{}: there is none", order.database)) }
    }

    fn move_database(&self, database: &str, volume: &str) -> Result<(), String> {
        if volume == "full" { Err(format!("no room for {database}")) } else { Ok(()) }
    }

    fn fixup(&self, order: &FixupOrder) -> Result<(), String> {
        let all = FixupOrder { database: "*".into(), views: false, quick: false, look: false, log: false };
        let one = FixupOrder { database: "mail/ada".into(), views: true, quick: true, look: true, log: true };
        if [all, one].contains(order) {
            Ok(())
        } else {
            Err(format!("{}: Database does not exist.", order.database))
        }
    }

    fn fixup_reports(&self) -> Reply {
        Reply { text: "reports\n".to_owned(), data: json!({}) }
    }

    fn set_aside(&self, database: Option<&str>) -> Result<Reply, String> {
        Ok(Reply { text: format!("{}\n", database.unwrap_or("all")), data: json!({}) })
    }

    fn databases(&self) -> Option<scrinium_catalog::Databases> {
        None
    }

    fn update_views(&self, order: &UpdateViews) -> Result<usize, String> {
        let UpdateViews { database, view, rebuild } = order;
        match database.as_str() {
            "*" => Ok(7),
            "mail/ada" if *rebuild && view.as_deref() == Some("by date") => Ok(1),
            _ => Err(format!("{database}: Database does not exist.")),
        }
    }

    fn back_up(&self, order: BackupOrder) -> Result<u64, String> {
        let place = order.repository.unwrap_or_else(|| "the usual place".into());
        order.bytes_per_second.ok_or_else(|| format!("no room in {}", place.display()))
    }

    fn freeze(&self, limit: Duration) -> Result<Reply, String> {
        Ok(Reply { text: format!("{limit:?}\n"), data: json!({}) })
    }

    fn thaw(&self) -> Result<Reply, String> {
        Err("changes are not held".to_owned())
    }

    fn restore_database(&self, order: RestoreOrder) -> Result<u64, String> {
        match order.target {
            Target::Sequence(sequence) => Ok(sequence),
            target => Err(format!("{target} cannot be reached")),
        }
    }

    fn properties(&self, database: &str) -> Result<Properties, String> {
        self.set_properties(database, &Map::new())
    }

    fn set_properties(&self, database: &str, wish: &Map<String, Value>) -> Result<Properties, String> {
        match database {
            "mail/ada" => Properties::default().changed(wish).map_err(|error| error.to_string()),
            _ => Err(format!("{database}: Database does not exist.")),
        }
    }
}

#[test]
fn changes_are_held_for_a_bounded_time() {
    let (console, _, _) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.text).map_err(|error| error.to_string());
    assert_eq!(said("freeze").unwrap(), "30s\n");
    assert_eq!(said("freeze 2min").unwrap(), "120s\n");
    for wrong in ["freeze 0", "freeze 11min", "freeze for ever", "thaw now"] {
        assert!(said(wrong).unwrap_err().starts_with("type it like this: "), "{wrong}");
    }
    assert_eq!(said("thaw").unwrap_err(), "changes are not held");
}

#[test]
fn backups_and_restores_are_begun() {
    let (console, _, _) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.data).map_err(|error| error.to_string());
    assert_eq!(said("load backup /backups -r 50MB").unwrap(), json!({"task": 50 << 20}));
    assert_eq!(said("lo b \"/two words\"").unwrap_err(), "no room in /two words");
    assert_eq!(said("load backup").unwrap_err(), "no room in the usual place");
    assert_eq!(said("load restore /backups mail/ada mail/ada-1 -t 17").unwrap(), json!({"task": 17}));
    assert!(
        said("load restore /backups mail/ada").unwrap_err().starts_with("type it like this: load restore")
    );
}

#[test]
fn moves_are_begun() {
    let (console, ..) = console();
    let reply = console.execute("load move mail/ada fast").unwrap();
    assert_eq!(reply.data, json!({"database": "mail/ada", "volume": "fast"}));
    assert!(reply.text.contains("show tasks"));
    let refused = console.execute("lo mo mail/ada full").unwrap_err().to_string();
    assert_eq!(refused, "no room for mail/ada");
    for wrong in ["load move", "load move mail/ada", "load move mail/ada fast now"] {
        assert!(
            matches!(
                console.execute(wrong),
                Err(ConsoleError::Usage { .. } | ConsoleError::Incomplete { .. })
            ),
            "{wrong}"
        );
    }
}

#[test]
fn properties_of_databases_are_shown_and_set() {
    let (console, _, _) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.text).map_err(|error| error.to_string());
    assert_eq!(said("show database mail/ada").unwrap(), "mail/ada\n  logged = true\n  full_text = false\n");
    assert_eq!(
        said("set data mail/ada logged = false").unwrap(),
        "mail/ada\n  logged = false\n  full_text = false\n"
    );
    assert_eq!(said("set database none logged=false").unwrap_err(), "none: Database does not exist.");
    assert!(said("set database mail/ada logged=no").unwrap_err().contains("must be true or false"));
    assert!(said("set database mail/ada size=1").unwrap_err().contains("known are: logged, full_text"));
    for line in ["set database mail/ada", "set database logged=true", "set database mail/ada =true"] {
        let usage = "type it like this: set database DATABASE PROPERTY=VALUE";
        assert_eq!(said(line).unwrap_err(), usage, "{line}");
    }
}

#[test]
fn databases_are_fixed_up() {
    let (console, _, _) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.text).map_err(|error| error.to_string());
    assert!(said("load fixup").unwrap().starts_with("Fixup has started"));
    assert!(said("lo fix mail/ada -v -F -q -n -L").unwrap().starts_with("Fixup has started"));
    assert_eq!(said("load fixup none").unwrap_err(), "none: Database does not exist.");
    for line in ["load fixup a b", "load fixup -X"] {
        assert!(
            said(line).unwrap_err().starts_with("type it like this: load fixup [DATABASE or *]"),
            "{line}"
        );
    }
    assert_eq!(said("sh fix").unwrap(), "reports\n");
    assert_eq!(said("show aside mail/ada").unwrap(), "mail/ada\n");
}

#[test]
fn attachments_are_moved() {
    let (console, _, _) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.text).map_err(|error| error.to_string());
    for command in ["load reread", "load reread *", "load reread mail/ada"] {
        assert!(said(command).unwrap().starts_with("Messages are being read again"), "{command}");
    }
    assert!(said("load reread mail/bob").is_err());
    assert!(said("load reread mail/ada mail/bob").is_err());
    let rule = "settle conflicts plans {\"newest\": \"Modified\"}";
    assert!(said(rule).unwrap().starts_with("Settling conflicts has started as task 12"));
    assert!(said("settle conflicts memos {}").is_err());
    assert!(said("load attachments").unwrap().starts_with("Attachments are being moved"));
    assert!(said("load att * --to-store").unwrap().starts_with("Attachments are being moved"));
    assert!(said("lo att mail/ada --to-volume --anew").unwrap().starts_with("Attachments are being moved"));
    assert_eq!(said("load attachments mail/bob").unwrap_err(), "attachments are being moved");
    for line in ["load attachments a b", "load attachments -V"] {
        let usage = "type it like this: load attachments [DATABASE or *]";
        assert!(said(line).unwrap_err().starts_with(usage), "{line}");
    }
}

#[test]
fn views_are_updated_and_built_anew() {
    let (console, _, _) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.text).map_err(|error| error.to_string());
    assert!(said("load updall *").unwrap().starts_with("Updating the views of 7 databases"));
    for line in ["load updall mail/ada -R -T by date", "lo upd mail/ada -T by date -R"] {
        assert!(said(line).unwrap().contains(" 1 databases"), "{line}");
    }
    assert_eq!(said("load updall none").unwrap_err(), "none: Database does not exist.");
    for line in ["load updall", "load updall a b", "load updall a -X", "load updall a -T "] {
        let usage = "type it like this: load updall DATABASE or * [-R] [-T VIEW]";
        assert_eq!(said(line).unwrap_err(), usage, "{line}");
    }
}

/// A console, the clock of its tasks, and its parts.
#[test]
fn databases_are_compacted_as_the_options_say_and_tasks_pause() {
    let (console, _, parts) = console();
    let said = |line: &str| console.execute(line).map(|reply| reply.text).map_err(|error| error.to_string());
    assert!(said("load compact mail/ada").unwrap().starts_with("Compacting 1 database;"));
    said("lo comp -B -D * -S 20 -Q").unwrap();
    said("load compact mail/ada -c").unwrap();
    let order = |style| CompactOrder { style, ..CompactOrder::default() };
    let all = CompactOrder {
        discard_views: true,
        least_garbage_percent: 20,
        bypass_file_cache: true,
        ..order(CompactStyle::Shrink)
    };
    let expected =
        [("mail/ada", order(CompactStyle::Reclaim)), ("*", all), ("mail/ada", order(CompactStyle::Copy))];
    let expected: Vec<_> = expected.into_iter().map(|(name, order)| (name.to_owned(), order)).collect();
    assert_eq!(*parts.compacted.lock().unwrap(), expected);
    assert!(said("load compact mail/ada -R").unwrap().starts_with("There is nothing to upgrade"));
    assert_eq!(said("load compact full").unwrap_err(), "there is no room");
    for line in [
        "load compact",
        "load compact a b",
        "load compact a -X",
        "load compact a -S",
        "load compact a -S 101",
    ] {
        assert!(said(line).unwrap_err().starts_with("type it like this: load compact DATABASE"), "{line}");
    }
    let task = parts.tasks.start("indexer", None, None);
    assert_eq!(said("tell 1 pause").unwrap_err(), "task 1 (indexer) cannot pause; tell 1 quit stops it");
    task.allow_pause();
    said("tell 1 pause").unwrap();
    assert!(task.is_paused() && said("show tasks").unwrap().contains("paused"));
    said("tell 1 resume").unwrap();
    assert!(!task.is_paused());
    assert!(said("tell 9 pause").unwrap_err().contains("no task 9"));
}

fn console() -> (Console, ManualClock, Arc<Parts>) {
    let statistics = Registry::new();
    statistics.counter("Server.Trans.Total").add(1_234_567);
    statistics.counter("Log.Syncs").add(42);
    statistics.gauge("Server.Trans.PerMinute", || 123.0);
    statistics.gauge("Server.Trans.PerMinute.Peak", || 9225.0);
    statistics.gauge("Database.BufferPool.Used", || 0.25);
    let operation = statistics.operation("OPEN_NOTE");
    (0..4).for_each(|_| operation.record(Duration::from_micros(1500)));
    statistics.operation("UPDATE_NOTE").record(Duration::from_micros(80));
    let _never_ran = statistics.operation("DELETE_NOTE");
    let clock = Clock::manual(1_700_000_000_000);
    let tasks = Tasks::with_clock(&clock.clock());
    let configuration = RunningConfiguration::new(Configuration::load(&Sources::default()).unwrap());
    for key in ["server.pool_tasks", "memory.budget"] {
        configuration.on_change(key, |_| Ok(()));
    }
    let parts = Arc::new(Parts { statistics, tasks, configuration, compacted: Mutex::default() });
    (Console::new(parts.clone()), clock, parts)
}

fn text(line: &str) -> String {
    let (console, ..) = console();
    console.execute(line).map_or_else(|error| format!("error: {error}"), |reply| reply.text)
}

#[test]
fn show_statistics() {
    assert_eq!(
        text("show stat"),
        "  Database.BufferPool.Used = 0.25
  Log.Syncs = 42
  Server.Trans.PerMinute = 123
  Server.Trans.PerMinute.Peak = 9225
  Server.Trans.Total = 1234567
  5 statistics found
"
    );
    assert_eq!(text("SH STAT log"), "  Log.Syncs = 42\n  1 statistic found\n");
    assert_eq!(text("show stat *.peak"), "  Server.Trans.PerMinute.Peak = 9225\n  1 statistic found\n");
    assert_eq!(text("show stat Sever"), "error: no statistic is called Sever; did you mean Server?");
    let (console, ..) = console();
    assert_eq!(
        console.execute("show stat Server.Trans.PerMinute").unwrap().data,
        json!({"statistics": {"Server.Trans.PerMinute": 123.0, "Server.Trans.PerMinute.Peak": 9225.0}})
    );
}

#[test]
fn show_transactions() {
    assert_eq!(
        text("show trans"),
        "\
Function     Count   Min   Max  Total   Avg   P50   P95   P99
OPEN_NOTE        4  1.50  1.50   6.00  1.50  1.50  1.50  1.50
UPDATE_NOTE      1  0.08  0.08   0.08  0.08  0.08  0.08  0.08
"
    );
    let (console, ..) = console();
    assert_eq!(
        console.execute("show transactions update*").unwrap().data,
        json!({"transactions": [{
            "function": "UPDATE_NOTE", "count": 1, "min_ms": 0.08, "max_ms": 0.08, "total_ms": 0.08,
            "average_ms": 0.08, "p50_ms": 0.08, "p95_ms": 0.08, "p99_ms": 0.08,
        }]})
    );
}

#[test]
fn show_tasks_and_tell_one_to_quit() {
    let (console, clock, parts) = console();
    assert_eq!(console.execute("show tasks").unwrap().text, "No task is running.\n");
    let indexer = parts.tasks.start("indexer", Some("mail/ann"), Some(20_000));
    let importer = parts.tasks.start("import", None, None);
    parts.tasks.start("import", Some("mail/bob"), Some(10)).fail("no such file: inbox.mbox");
    clock.advance(Duration::from_secs(10));
    indexer.progress(1200);
    importer.progress(7);
    let asked = console.execute("tell 2 quit").unwrap();
    assert_eq!(asked.text, "Task 2 was asked to stop.\n");
    let reply = console.execute("show tasks").unwrap();
    assert_eq!(
        reply.text,
        "\
Task  Kind     Database   Done      Of  %  Per second        Left  State
   1  indexer  mail/ann  1,200  20,000  6         120  2 min 36 s  running
   2  import                 7                    0.7              stopping

Ended lately:
Task  Kind    Database  Done  Of  %  Per second  Took  State
   3  import  mail/bob     0  10  0           0   0 s  failed: no such file: inbox.mbox
"
    );
    assert_eq!(reply.data["running"][0]["remaining_seconds"], json!(157.0));
    assert_eq!(reply.data["ended"][0]["reason"], json!("no such file: inbox.mbox"));
    let unknown = console.execute("tell 9 quit").unwrap_err().to_string();
    assert_eq!(unknown, "no task 9 is running; show tasks lists them");
}

/// Anyone who has begun a task must find it, however many have ended since it was looked for.
#[test]
fn a_task_that_has_ended_is_told_though_others_have_ended_since() {
    let (console, _, parts) = console();
    (0..40).for_each(|_| parts.tasks.start("indexer", None, None).finish());
    let reply = console.execute("show tasks").unwrap();
    assert_eq!(reply.text.lines().filter(|line| line.contains("finished")).count(), 10);
    let told = reply.data["ended"].as_array().unwrap().iter().map(|task| task["task"].as_u64().unwrap());
    assert_eq!(told.min(), Some(1));
}

#[test]
fn show_server() {
    assert_eq!(
        text("show server"),
        "\
Scrinium server        0.1.0, process 4711
Server name            mail.example.com
Server directory       /srv/scrinium
Ports                  https://127.0.0.1:5984, http://[::1]:80
Started                2023-11-14T22:13:20Z, 1 d 2 h ago
Users                  0
Transactions           1,234,567
Transactions/minute    last minute 123, peak 9225
Refused as busy        0
"
    );
    let (console, _, parts) = console();
    let megabytes = [
        ("Log.Size", 192.0),
        ("Log.Redo.Bytes", 17.26),
        ("Log.Redo.Limit", 256.0),
        ("Log.Restart.Bytes", 0.0),
    ];
    for (name, value) in megabytes {
        parts.statistics.gauge(name, move || value * 1_048_576.0);
    }
    for (name, value) in
        [("Database.RM.Sys.Log.Type", 1.0), ("Log.Redo.Seconds", 0.126), ("Log.Restart.Seconds", 0.0)]
    {
        parts.statistics.gauge(name, move || value);
    }
    let shown = console.execute("show server").unwrap();
    assert!(shown.text.ends_with(
        "\
Transaction log        circular, 192 MB on disk
Restart after a crash  would do 17.3 MB again in about 0.13 s; checkpoint at 256 MB
Last restart           did 0 MB again in 0 s
"
    ));
    assert_eq!(shown.data["log"]["redo_limit_bytes"], 268_435_456.0);
}

#[test]
fn show_and_set_configuration() {
    let (console, _, parts) = console();
    let told = |line: &str| console.execute(line).map_or_else(|error| error.to_string(), |reply| reply.text);
    assert_eq!(
        told("set config SERVER_POOL_TASKS=200"),
        "server.pool_tasks = 200 (was 100)\n\
         It is used from now on, until the server ends: it runs without a configuration file.\n"
    );
    assert_eq!(parts.configuration.settings().server.pool_tasks, 200);
    assert_eq!(
        told("show config server.pool_tasks"),
        "\
server.pool_tasks = 200    (set config)
  Jobs on databases that run at once, each on a thread of its own. More than the
  processors and disks can serve only makes each wait longer. With a small `memory.budget`
  there are fewer, one for each 8 MB of it, and no fewer than 4, since each thread holds
  memory of its own.
  takes        a whole number, 1 to 10000
  default      100
  Domino       SERVER_POOL_TASKS
  file         [server] pool_tasks = ...
  environment  SCRINIUM_SERVER__POOL_TASKS
  new value    used at once
"
    );
    assert!(told("show config").contains("pool_tasks = 200                         # set config\n"));
    assert!(told("show config mail").starts_with("[mail]\n  Mail.\n\nmail.boxes = 4    (default)\n"));
    assert_eq!(told("show config mailbox"), "there is no key mailbox; did you mean mail.boxes?");
    assert_eq!(told("set config"), "type it like this: set configuration KEY=VALUE");
    assert_eq!(
        told("set config mail.boxes=99"),
        "mail.boxes: 99 is out of bounds: it takes a whole number, 1 to 10"
    );
    let data = console.execute("set config memory.budget = 1 GB").unwrap().data;
    assert_eq!(
        data,
        json!({"key": "memory.budget", "old": "25 %", "new": 1 << 30, "used": "now", "kept_in": null})
    );
}

#[test]
fn what_is_not_understood_is_told_with_what_is_near() {
    assert_eq!(text(""), "error: type a command; help lists them");
    assert_eq!(
        text("shwo stat"),
        "error: there is no command \"shwo stat\"; did you mean: show statistics [FACILITY or PATTERN]"
    );
    assert_eq!(text("show taks"), "error: there is no command \"show taks\"; did you mean: show tasks");
    assert_eq!(text("reboot"), "error: there is no command \"reboot\"; help lists them");
    assert_eq!(text("sh t"), "error: \"sh t\" could be: show transactions; show tasks");
    assert_eq!(
        text("set"),
        "error: \"set\" needs more: set configuration KEY=VALUE; set database DATABASE PROPERTY=VALUE; \
         set hold PERSON or database=NAME MATTER"
    );
    // Though "settle conflicts" begins alike.
    assert_eq!(text("set con"), "error: type it like this: set configuration KEY=VALUE");
    assert_eq!(text("tell 7 jokes"), "error: type it like this: tell NUMBER quit|pause|resume");
    assert_eq!(text("show tasks now"), "error: type it like this: show tasks");
    assert_eq!(text("show stat\nshow tasks"), "error: a command is one line of at most 4096 bytes");
}

#[test]
fn help_lists_every_command_and_each_is_understood_in_full() {
    let help = text("help");
    for known in COMMANDS {
        assert!(help.contains(&known.usage()), "{}", known.usage());
        let understood = Command::parse(&known.phrase());
        assert!(matches!(understood, Ok(_) | Err(ConsoleError::Usage { .. })), "{understood:?}");
    }
    assert_eq!(text("?"), help);
}

proptest! {
    #[test]
    fn no_line_makes_the_console_panic(
        line in "(?s).{0,60}|(sh|show|set|tell|help) (stat|tr|ta|se|conf|con|[0-9]{1,25})?( |=)?[a-z.=*? ]{0,20}"
    ) {
        let (console, ..) = console();
        match console.execute(&line) {
            Ok(reply) => prop_assert!(reply.text.ends_with('\n'), "{:?}", line),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn show_memory() {
    let (console, _, parts) = console();
    parts.statistics.gauge("Database.BufferPool.Maximum.Megabytes", || 64.0);
    parts.statistics.gauge("Database.BufferPool.ByPurpose.ViewTrees", || 16_777_216.0);
    let reply = console.execute("sh mem").unwrap();
    let trees = reply.text.lines().find(|line| line.starts_with("ViewTrees")).unwrap();
    assert_eq!(trees.split_whitespace().skip(1).take(2).collect::<Vec<_>>(), ["16.0", "25.0"]);
    assert_eq!(reply.data["by_purpose_bytes"]["ViewTrees"], 16_777_216.0);
    // The databases of this console are not open.
    assert!(text("show databases").starts_with("error: the databases are not open"));
}
