//! `set config` on a running server: bounds, what takes effect at once, and what the file keeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use scrinium_server::config::{
    Change, Configuration, Kept, Key, Kind, RunningConfiguration, SetError, Source, Sources, keys,
    volume_section,
};

const FILE: &str = "\
# Our server.
[server]
pool_tasks = 50   # tried 100 in May

[log] # fast disk
dir = \"/fast/log\"
";

fn running(environment: &[(&str, &str)]) -> (RunningConfiguration, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scrinium.toml");
    std::fs::write(&file, FILE).unwrap();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let sources =
        Sources { file: Some(file.clone()), environment: environment.collect(), ..Sources::default() };
    (listening(&sources), file, folder)
}

/// A configuration with a hook for every key that changes while running.
fn listening(sources: &Sources) -> RunningConfiguration {
    let configuration = RunningConfiguration::new(Configuration::load(sources).unwrap());
    for key in keys().filter(|key| key.change == Change::Running) {
        configuration.on_change(key.name, |_| Ok(()));
    }
    configuration
}

#[test]
fn a_value_takes_effect_at_once_and_the_file_keeps_it_and_its_comments() {
    let (configuration, file, _folder) = running(&[]);
    let threads = Arc::new(AtomicUsize::new(0));
    let seen = threads.clone();
    configuration.on_change("server.pool_tasks", move |settings| {
        seen.store(settings.server.pool_tasks, Ordering::Relaxed);
        Ok(())
    });
    let changed = configuration.set("SERVER_POOL_TASKS", "200").unwrap();
    assert_eq!((changed.key.as_str(), changed.change), ("server.pool_tasks", Change::Running));
    assert_eq!((changed.old.to_string(), changed.new.to_string()), ("50".to_owned(), "200".to_owned()));
    assert_eq!(changed.kept, Kept::File(file.clone()));
    assert_eq!((threads.load(Ordering::Relaxed), configuration.settings().server.pool_tasks), (200, 200));
    assert_eq!(configuration.configuration().get("server.pool_tasks").unwrap().source, Source::Console);

    configuration.set("memory.budget", "1.5 GB").unwrap();
    configuration.set("log.spare_extents", "5").unwrap();
    assert_eq!(configuration.settings().log.spare_extents, 2, "changes at the next start");
    let expected = "\
# Our server.
[server]
pool_tasks = 200   # tried 100 in May

[log] # fast disk
dir = \"/fast/log\"
spare_extents = 5

[memory]
budget = \"1536 MB\"
";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expected);
    let again = Configuration::load(&Sources { file: Some(file), ..Sources::default() }).unwrap();
    assert_eq!(again.settings().log.spare_extents, 5);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let (configuration, file, _folder) = running(&[]);
    configuration.on_change("memory.budget", |_| Err("the store is closed".to_owned()));
    let refused = |name: &str, value: &str| configuration.set(name, value).unwrap_err().to_string();
    assert_eq!(
        refused("server.pool_tasks", "0"),
        "server.pool_tasks: 0 is out of bounds: it takes a whole number, 1 to 10000"
    );
    assert_eq!(
        refused("server.pool_task", "1"),
        "there is no key server.pool_task; did you mean server.pool_tasks?"
    );
    assert_eq!(refused("memory.budget", "50 %"), "memory.budget stays as it is: the store is closed");
    assert_eq!(
        refused("http.body_budget_bytes", "10 MB"),
        "http.body_budget_bytes: it must be at least 64 MB, as http.max_request_bytes"
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), FILE);
    assert_eq!(configuration.settings().memory.budget.to_string(), "25 %");
}

#[test]
fn it_says_when_the_value_will_not_last() {
    let (configuration, file, folder) = running(&[("SCRINIUM_SERVER__POOL_TASKS", "70")]);
    let variable = Source::Environment { variable: "SCRINIUM_SERVER__POOL_TASKS".to_owned() };
    let changed = configuration.set("server.pool_tasks", "80").unwrap();
    assert_eq!(changed.kept, Kept::Overridden(file.clone(), variable));
    drop(folder);
    let changed = configuration.set("document.max_bytes", "9 MB").unwrap();
    assert!(matches!(changed.kept, Kept::Failed(path, _) if path == file));
    assert_eq!(configuration.settings().document.max_bytes, 9 << 20, "it is used all the same");

    let without_file = listening(&Sources::default());
    assert_eq!(without_file.set("server.pool_tasks", "80").unwrap().kept, Kept::Nowhere);
    let not_kept = without_file.set("mail.boxes", "8");
    assert_eq!(not_kept, Err(SetError::NotKept { key: "mail.boxes".to_owned() }));
}

#[test]
fn a_key_that_no_part_uses_while_running_is_not_set() {
    let configuration = RunningConfiguration::new(Configuration::load(&Sources::default()).unwrap());
    let refused = configuration.set("server.pool_tasks", "7").unwrap_err().to_string();
    assert_eq!(refused, "server.pool_tasks stays as it is: no part of this server uses it while running");
    assert_eq!(configuration.settings().server.pool_tasks, 100);
}

/// Anyone who has an administrator's password has the server's data, and no more of the machine.
#[test]
fn keys_that_say_what_the_process_may_do_are_set_in_the_file_alone() {
    let (configuration, file, _folder) = running(&[]);
    let is_of_the_machine = |key: &Key| {
        let takes_a_place = matches!(key.kind, Kind::Path | Kind::Addresses { .. });
        let names_one = [
            "tls",
            "cors_",
            "operation_log",
            "store",
            "targets",
            "recipient",
            "identity",
            "trusted",
            "lock_",
            "delay_",
            "password_",
            "max_age",
            "keep_audit",
        ];
        let others = ["operation_log_bytes", "delay_notice"];
        takes_a_place
            || (names_one.iter().any(|part| key.short_name().starts_with(part))
                && !others.contains(&key.short_name()))
    };
    let of_volumes = volume_section().keys.iter().filter(|key| key.short_name().ends_with("dir"));
    for key in keys().filter(|key| is_of_the_machine(key)).chain(of_volumes) {
        assert_eq!(key.change, Change::File, "{}", key.name);
    }
    for key in keys().filter(|key| key.change == Change::File) {
        let refused = configuration.set(key.name, key.default).unwrap_err();
        assert!(matches!(refused, SetError::FileOnly { .. }), "{}: {refused}", key.name);
        let (section, short_name) = key.name.split_once('.').unwrap();
        let told = refused.to_string();
        assert!(told.contains(&format!("write `{short_name} = ")), "{told}");
        assert!(told.contains(&format!("under [{section}] in {}", file.display())), "{told}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), FILE);
}

#[test]
fn a_key_of_a_volume_is_set_in_its_own_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scrinium.toml");
    std::fs::write(&file, "[volume.fast]\ndir = \"/fast\" # the NVMe\n").unwrap();
    let configuration = listening(&Sources { file: Some(file.clone()), ..Sources::default() });
    configuration.on_change("volume.memory_percent", |_| Ok(()));
    let changed = configuration.set("volume.fast.memory_percent", "25").unwrap();
    assert_eq!((changed.key.as_str(), changed.change), ("volume.fast.memory_percent", Change::Running));
    assert_eq!(configuration.settings().volumes["fast"].memory_percent, 25);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept, "[volume.fast]\ndir = \"/fast\" # the NVMe\nmemory_percent = 25\n");
    let refused = |name: &str, value: &str| configuration.set(name, value).unwrap_err().to_string();
    assert!(refused("volume.none.memory_percent", "5").contains("under [volume.none]"));
    assert!(
        refused("volume.fast.dir", "/faster").contains("write `dir = \"/faster\"` under [volume.fast] in ")
    );
    assert!(refused("volume.fast.memory_percent", "81").contains("out of bounds"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
}
