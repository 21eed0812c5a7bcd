//! What a process reported is known once it is killed, and one that failed by itself is distinguished from one that was killed.

use std::collections::BTreeMap;
use std::time::Duration;

use scrinium_fault::{Victim, tell, writes_done};

const WORKS: u64 = 1;
const FAILS: u64 = 2;

/// Tells five writes and begins a sixth, or fails after the first.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let Some((folder, order)) = Victim::order() else { return };
    assert!(folder.is_dir());
    for number in 0..5 {
        tell(format_args!("begin {} {number}", number % 3));
        tell(format_args!("done {} {number}", number % 3));
        assert!(order != FAILS, "it was told to");
    }
    tell("begin 7 5");
    tell("ready");
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn what_was_told_before_a_kill_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(module_path!(), folder.path(), WORKS).unwrap();
    victim.wait_until_ready().unwrap();
    let mut known = BTreeMap::new();
    assert_eq!(writes_done(&victim.kill().unwrap(), &mut known), Some((7, 5)));
    assert_eq!(known, BTreeMap::from([(0, 3), (1, 4), (2, 2)]));
}

#[test]
fn a_child_that_failed_before_is_no_victim() {
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start(module_path!(), folder.path(), FAILS).unwrap();
    assert!(victim.wait_until_ready().is_err());
    assert!(victim.kill().is_err());
}
