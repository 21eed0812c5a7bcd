//! Reading the configuration: what is right is read from every source, what is wrong is reported with its
//! place.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use scrinium_server::config::{
    Address, ConfigError, Configuration, SECTIONS, Settings, Share, Source, Sources, default_file, dump_json,
    dump_text, key, keys, nearest_key,
};

fn parse(text: &str) -> Result<Configuration, ConfigError> {
    Configuration::parse(Path::new("scrinium.toml"), text)
}

/// Everything that is wrong with a file, a line each.
fn problems(text: &str) -> String {
    parse(text).map_or_else(|error| error.to_string(), |_| "nothing".to_owned())
}

#[test]
fn every_kind_is_read_from_the_file() {
    let settings = parse(
        r#"
        [server]
        data_dir = "/srv/scrinium"
        pool_tasks = 1_000
        admission_timeout = "1.5 s"
        [log]
        extent_bytes = 1048576
        direct_io = false
        [memory]
        budget = "40%"
        [document]
        max_bytes = "1.5 MB"
        [http]
        listen = ["127.0.0.1:8080", "[::1]:8080", "localhost:0"]
        tls = true
        cors_origins = ["https://example.com", "*"]
        "#,
    )
    .unwrap()
    .settings();
    assert_eq!(settings.server.data_dir, PathBuf::from("/srv/scrinium"));
    assert_eq!((settings.server.pool_tasks, settings.server.max_concurrent_transactions), (1000, 1000));
    assert_eq!(settings.server.admission_timeout, Duration::from_millis(1500));
    assert_eq!((settings.log.extent_bytes, settings.log.direct_io), (1 << 20, false));
    assert_eq!((settings.memory.budget, settings.memory.budget.of(1000)), (Share::Percent(40), 400));
    assert_eq!(settings.document.max_bytes, 3 << 19);
    let hosts: Vec<(&str, u16)> =
        settings.http.listen.iter().map(|address| (address.host.as_str(), address.port)).collect();
    assert_eq!(hosts, [("127.0.0.1", 8080), ("::1", 8080), ("localhost", 0)]);
    assert!(settings.http.tls && !settings.http.compression);
    assert_eq!(settings.http.cors_origins, ["https://example.com", "*"]);
    assert_eq!(settings.in_data_dir(&settings.log.dir), PathBuf::from("/srv/scrinium/log"));
}

#[test]
fn volumes_have_names_of_their_own_and_the_defaults_of_all() {
    let text = r#"
[volume.fast]
dir = "/fast"
memory_percent = 30
databases = ["app/*", "mail/ada"]
[volume.slow-1]
dir = "/slow"
"#;
    let configuration = parse(text).unwrap();
    let settings = configuration.settings();
    let fast = &settings.volumes["fast"];
    assert_eq!((fast.dir.as_str(), fast.memory_percent, fast.file_cache.as_str()), ("/fast", 30, "system"));
    assert_eq!(
        (fast.takes("app/one"), fast.takes("mail/ada"), fast.takes("mail/ad")),
        (Some(4), Some(usize::MAX), None)
    );
    assert_eq!(settings.volumes["slow-1"].memory_percent, 10);
    // What is dumped reads as what it was dumped of.
    assert_eq!(parse(&dump_text(&configuration, false)).unwrap().settings(), settings);
    assert_eq!(dump_json(&configuration, true)["volume.fast.memory_percent"]["value"], 30);
    let environment = [("SCRINIUM_VOLUME__FAST__DIR", "/other"), ("SCRINIUM_VOLUME__NEW__DIR", "/new")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let read = Configuration::load(&Sources { environment, ..Sources::default() }).unwrap().settings();
    assert_eq!((read.volumes["fast"].dir.as_str(), read.volumes["new"].dir.as_str()), ("/other", "/new"));

    for (text, wrong) in [
        ("[volume]\ndir = \"/a\"", "volumes have names"),
        ("[volume.fast]", "scrinium.toml:1: volume.fast.dir: name the folder"),
        ("[volume.fast]\nmemory_percent = 5", "volume.fast.dir: name the folder"),
        ("[volume.main]\ndir = \"/a\"", "name the volume otherwise"),
        ("[volume.\"a b\"]\ndir = \"/a\"", "no name of a volume"),
        ("[volume.a]\ndir = \"/a\"\nsize = 3", "scrinium.toml:3: there is no key volume.a.size"),
        ("[volume.a]\ndir = \"/a\"\n[volume.b]\ndir = \"/a/b\"", "lies in that of the volume a"),
        ("[volume.a]\ndir = \"store\"", "the store in the data folder"),
        (
            "[volume.a]\ndir = \"/a\"\nmemory_percent = 50\n[volume.b]\ndir = \"/b\"\nmemory_percent = 40",
            "80 %",
        ),
    ] {
        let problems = problems(text);
        assert!(problems.contains(wrong), "{text}: {problems}");
    }
}

#[test]
fn other_ways_of_writing_toml_are_read_too() {
    for text in ["server.pool_tasks = 7", "server = { pool_tasks = 7 }", "[server]\n\"pool_tasks\" = 7"] {
        assert_eq!(parse(text).unwrap().settings().server.pool_tasks, 7, "{text}");
    }
    assert_eq!(parse("").unwrap().settings(), Settings::default());
}

#[test]
fn everything_wrong_is_told_at_once_with_its_line() {
    let text = r#"
[server]
pool_task = 10
pool_tasks = "10"
max_concurrent_transactions = 0
admission_timeout = 10
shutdown_timeout = "3 fortnights"

[sever]
name = "mail"

[http]
listen = ["5984"]
tls = "yes"
cors_origins = ["example.com"]
nothing_that_anybody_has_ever_heard_of_in_this_place = 5

[log.dir]
path = "/log"

[mail]
boxes = -1
domains = ["über.example"]

[tracing]
level = "info,scrinium_store=loud"
"#;
    assert_eq!(
        problems(text),
        r#"scrinium.toml:3: there is no key server.pool_task; did you mean server.pool_tasks?
scrinium.toml:4: server.pool_tasks: a value of type string cannot stand here: it takes a whole number, 1 to 10000
scrinium.toml:5: server.max_concurrent_transactions: 0 is out of bounds: it takes a whole number, 1 to 1000000
scrinium.toml:6: server.admission_timeout: a value of type integer cannot stand here: it takes a time, 1 ms to 1 h
scrinium.toml:7: server.shutdown_timeout: "3 fortnights" is no time: the units are ms, s, min, h and d
scrinium.toml:9: there is no section [sever]; did you mean [server]?
scrinium.toml:13: http.listen: "5984" is no address: write it like "127.0.0.1:5984" or "[::1]:5984"
scrinium.toml:14: http.tls: a value of type string cannot stand here: it takes true or false
scrinium.toml:15: http.cors_origins: "example.com" is no origin: write it like "https://example.com"
scrinium.toml:16: there is no key http.nothing_that_anybody_has_ever_heard_of_in_this_place; `scrinium config default` shows all
scrinium.toml:18: log.dir is no section: it takes a path
scrinium.toml:22: mail.boxes: -1 is negative
scrinium.toml:23: mail.domains: "über.example" is no host name
scrinium.toml:26: tracing.level: "loud" is no level: it is one of off, error, warn, info, debug, trace"#
    );
}

#[test]
fn mistakes_in_the_file_itself_name_their_line() {
    assert_eq!(
        problems("[server]\npool_tasks = 10\nname = \"mail\n[log]\n"),
        "scrinium.toml:3: invalid basic string, expected `\"`"
    );
    assert_eq!(
        problems("pool_tasks = 7"),
        "scrinium.toml:1: there is no key pool_tasks; did you mean server.pool_tasks?"
    );
    assert_eq!(
        problems("\n\nserver = 7"),
        "scrinium.toml:3: server is a section: write its keys under [server]"
    );
}

#[test]
fn settings_that_contradict_each_other_are_told() {
    assert_eq!(
        problems("[document]\nmax_bytes = \"16 MB\"\n[http]\n\nmax_request_bytes = \"8 MB\""),
        "scrinium.toml:5: http.max_request_bytes: it must be at least 16 MB, as document.max_bytes"
    );
}

#[test]
fn the_nearest_key_is_found_by_dominos_name_by_its_end_and_by_likeness() {
    assert_eq!(nearest_key("SERVER_POOL_TASKS"), Some("server.pool_tasks"));
    assert_eq!(nearest_key("nsf_buffer_pool_size_mb"), Some("memory.budget"));
    assert_eq!(nearest_key("boxes"), Some("mail.boxes"));
    assert_eq!(nearest_key("log.extent_byte"), Some("log.extent_bytes"));
    assert_eq!(nearest_key("http.listne"), Some("http.listen"));
    assert_eq!(nearest_key("server.data_directory"), Some("server.data_dir"));
    assert_eq!(nearest_key("full_text.enabled"), None);
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scrinium.toml");
    std::fs::write(&file, "[server]\npool_tasks = 1\nname = \"one\"\ndata_dir = \"one\"\n").unwrap();
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut sources = Sources {
        file: Some(file.clone()),
        environment: vec![
            variable("SCRINIUM_SERVER__NAME", "two"),
            variable("SCRINIUM_SERVER__DATA_DIR", "two"),
            variable("SCRINIUM_HTTP__LISTEN", "localhost:1, [::1]:2"),
            variable("SCRINIUM_HTTP__CORS_ORIGINS", ""),
            variable("SCRINIUM_CACHE", "left alone"),
            variable("PATH", "left alone"),
        ],
        command_line: vec![("--data-dir", "server.data_dir", "three".to_owned())],
    };
    let configuration = Configuration::load(&sources).unwrap();
    let listen =
        vec![Address { host: "localhost".to_owned(), port: 1 }, Address { host: "::1".to_owned(), port: 2 }];
    assert_eq!(configuration.settings().http.listen, listen);
    let effective = |name: &str| {
        let effective = configuration.get(name).unwrap();
        (effective.value.to_string(), effective.source.to_string())
    };
    let pair = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(effective("server.pool_tasks"), pair("1", &format!("{}:2", file.display())));
    assert_eq!(effective("server.name"), pair("two", "SCRINIUM_SERVER__NAME"));
    assert_eq!(effective("server.data_dir"), pair("three", "--data-dir"));
    assert_eq!(effective("mail.boxes"), pair("4", "default"));
    assert_eq!(
        dump_text(&configuration, true).replace(&file.display().to_string(), "FILE"),
        r#"[server]
data_dir = "three"                       # --data-dir
name = "two"                             # SCRINIUM_SERVER__NAME
pool_tasks = 1                           # FILE:2

[http]
listen = ["localhost:1", "[::1]:2"]      # SCRINIUM_HTTP__LISTEN
cors_origins = []                        # SCRINIUM_HTTP__CORS_ORIGINS
"#
    );
    assert_eq!(
        dump_json(&configuration, true)["server.name"],
        serde_json::json!({"value": "two", "source": "SCRINIUM_SERVER__NAME"})
    );

    sources.environment.push(variable("SCRINIUM_MAIL__BOXEN", "3"));
    sources.environment.push(variable("SCRINIUM_MAIL__BOXES", "11"));
    assert_eq!(
        Configuration::load(&sources).unwrap_err().to_string(),
        "SCRINIUM_MAIL__BOXEN: there is no key mail.boxen; did you mean mail.boxes?\n\
         SCRINIUM_MAIL__BOXES: mail.boxes: 11 is out of bounds: it takes a whole number, 1 to 10"
    );
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let sources = Sources { file: Some(PathBuf::from("/nowhere/scrinium.toml")), ..Sources::default() };
    let error = Configuration::load(&sources).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the configuration file /nowhere/scrinium.toml: "), "{error}");
}

#[test]
fn the_table_is_sound() {
    let names: Vec<&str> = keys().map(|key| key.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "no name twice");
    for section in SECTIONS {
        assert!(section.help().ends_with('.'), "{}: {}", section.name, section.help());
    }
    for key in keys() {
        let default = key.default_value().unwrap_or_else(|what| panic!("{}: {what}", key.name));
        assert!(key.help().ends_with('.'), "{}: {}", key.name, key.help());
        assert_eq!(key.kind.parse_text(&default.to_string()), Ok(default.clone()), "{}", key.name);
        assert_eq!(key.kind.parse_toml(&default.to_toml()), Ok(default), "{}", key.name);
    }
}

#[test]
fn the_commented_file_says_what_is_so_without_it() {
    let file = default_file();
    let used: String = file
        .lines()
        .map(|line| line.strip_prefix('#').filter(|line| !line.starts_with(' ')).unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(parse(&file).unwrap().settings(), Settings::default());
    let configuration = parse(&used).unwrap();
    assert_eq!(configuration.settings(), Settings::default());
    for key in keys() {
        let source = &configuration.get(key.name).unwrap().source;
        assert!(matches!(source, Source::File { .. }), "{} is not in the file", key.name);
    }
    assert!(file.lines().all(|line| line.chars().count() <= 110), "lines are too long");
}

#[test]
fn a_dump_can_be_read_again() {
    let configuration = parse("[server]\npool_tasks = 9\n[memory]\nbudget = \"1 GB\"\n").unwrap();
    let again = parse(&dump_text(&configuration, false)).unwrap();
    assert_eq!(again.settings(), configuration.settings());
}

/// Text that is nearly a configuration, so that the reader gets past its first steps.
fn nearly_toml() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = keys().map(|key| key.name).collect();
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "\"[0-9]{0,25}(\\.[0-9]{0,25})? ?(KB|TB|ms|d|%|x)?\"",
        "\"[a-z:.\\[\\]0-9/*]{0,20}\"",
        "\\[(\"[a-z:.0-9]{0,9}\"|[0-9]|,){0,6}\\]",
        "\\{ ?[a-z]{0,3} ?= ?[0-9]? ?\\}",
        ".{0,20}",
    ];
    let line = (prop::sample::select(names), value).prop_map(|(name, value)| format!("{name} = {value}\n"));
    prop::collection::vec(prop_oneof![4 => line, 1 => "(?s).{0,30}\n"], 0..8).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in nearly_toml()) {
        if let Err(error) = parse(&text) {
            let lines = text.lines().count().max(1);
            for problem in error.problems() {
                let Source::File { line, .. } = problem.source else { panic!("{problem}") };
                prop_assert!((1..=lines + 1).contains(&line), "{}", problem);
                prop_assert!(!problem.what.is_empty() && !problem.what.contains('\n'), "{}", problem);
            }
        }
    }

    #[test]
    fn no_value_of_a_variable_makes_the_reader_panic(
        index in 0..keys().count(),
        text in "(?s).{0,40}|[0-9]{0,30}(\\.[0-9]{0,30})? ?(KB|TB|ms|d|%)?",
    ) {
        let key = keys().nth(index).unwrap();
        if let Ok(value) = key.kind.parse_text(&text) {
            prop_assert_eq!(key.kind.parse_text(&value.to_string()), Ok(value));
        }
    }

    #[test]
    fn numbers_are_taken_within_their_bounds_only(number in 0_usize..20_000) {
        let taken = key("server.pool_tasks").unwrap().kind.parse_text(&number.to_string()).is_ok();
        prop_assert_eq!(taken, (1..=10_000).contains(&number));
    }
}
