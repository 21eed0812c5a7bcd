//! Reading `/proc`.

use std::net::TcpListener;

use scrinium_lab::load::{Supplies, judge_supplies};
use scrinium_lab::monitor::{
    ProcessCounts, ProcessMeter, WaitMeter, cpus_allowed, family, listening_inodes, memory_allowed_bytes,
    parse_allowed_cpus, parse_group, parse_schedstat, parse_stat, parse_written, process_listening,
    program_name,
};

#[test]
fn stat_is_read_whatever_the_program_is_called() {
    let rest = "S 1 4242 4242 0 -1 4194560 9001 12 3 0 1234 567 8 9 20 0 17 0 8765 987654321 4321 18446744073709551615 1 1 0";
    let wanted =
        ProcessCounts { user_ticks: 1234, system_ticks: 567, resident_pages: 4321, written_bytes: None };
    for name in ["(scrinium)", "(a b)", "(x) 9 9 (y)", "())"] {
        assert_eq!(parse_stat(&format!("4242 {name} {rest}")), Some(wanted), "{name}");
    }
    for broken in ["", "4242", "4242 (x) S 1", "4242 (x) S 1 4242 4242 0 -1 0 0 0 0 0 many 567"] {
        assert_eq!(parse_stat(broken), None, "{broken}");
    }
}

#[test]
fn io_counts_what_reached_the_disk() {
    let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
    assert_eq!(parse_written(text), Some(4096));
    assert_eq!(parse_written("read_bytes: 5\n"), None);
}

#[test]
fn listeners_are_told_apart_from_connections() {
    let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 0100007F:176F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 30303 1 0 100 0 0 10 0\n\
   1: 0100007F:176F 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 40404 1 0 20 4 30 10 -1\n\
   2: 0100007F:1770 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 50505 1 0 100 0 0 10 0\n";
    assert_eq!(listening_inodes(table, 5999).into_iter().collect::<Vec<_>>(), [30303]);
}

#[test]
fn this_process_is_found_by_its_port_and_measured() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pid = std::process::id();
    assert_eq!(process_listening("localhost", port), Some(pid));
    assert_eq!(process_listening("192.0.2.1", port), None, "another machine's processes cannot be seen");
    assert!(program_name(pid).is_some());
    assert!(family(pid).contains(&pid));

    let mut meter = ProcessMeter::new(pid).unwrap();
    let mut sum = 0_u64;
    let mut usage = meter.read().unwrap();
    // Some work until the clock of CPU time, which ticks every 10 ms, has moved.
    for round in 0..100_000_000_u64 {
        sum = sum.wrapping_mul(31).wrapping_add(round);
        if round % 1_000_000 == 0 {
            usage = meter.read().unwrap();
            if usage.user_s > 0.0 {
                break;
            }
        }
    }
    assert!(usage.user_s > 0.0, "{sum}");
    assert!(usage.resident_bytes > 1_000_000);
    assert!(ProcessMeter::new(u32::MAX).is_none());
}

#[test]
fn what_a_process_may_use_is_read_from_affinity_and_groups() {
    let allowed =
        |list: &str| parse_allowed_cpus(&format!("Name:\tx\nCpus_allowed_list:\t{list}\nMems_allowed:\t1\n"));
    assert_eq!((allowed("0"), allowed("0-3"), allowed("0-3,8,10-11")), (Some(1), Some(4), Some(7)));
    assert_eq!((allowed(""), allowed("3-1"), parse_allowed_cpus("Name:\tx\n")), (None, None, None));
    let groups = "4:memory:/a/b\n3:cpu,cpuacct:/c\n0::/user.slice/x\n";
    assert_eq!(parse_group(groups, ""), Some("/user.slice/x"));
    assert_eq!((parse_group(groups, "cpu"), parse_group(groups, "memory")), (Some("/c"), Some("/a/b")));
    assert_eq!(parse_group(groups, "blkio"), None);
    // The first CPU may be missing, but not all of them.
    assert!(cpus_allowed() > 0.0 && memory_allowed_bytes().is_some_and(|bytes| bytes > 1 << 20));
}

#[test]
fn waits_for_a_cpu_are_counted() {
    assert_eq!(parse_schedstat("311276 126091 3\n"), Some((126_091, 3)));
    assert_eq!((parse_schedstat(""), parse_schedstat("1 2")), (None, None));
    let Some(mut meter) = WaitMeter::new() else {
        return scrinium_fault::skip("this system does not count waits (schedstat in /proc)");
    };
    let mut turns = 0;
    while turns < 3 {
        // Each sleep ends with a turn.
        std::thread::sleep(std::time::Duration::from_millis(2));
        turns += meter.read().turns;
    }
}

/// What would run out in the middle of a run is named before it, with what to do about it.
#[test]
fn supplies_are_judged_before_a_run() {
    let plenty = Supplies { files: Some(20_000), ports: Some((32_768, 60_999)), memory_bytes: Some(2 << 30) };
    assert_eq!(judge_supplies(10_000, 10_000, &plenty), Ok(()));
    assert_eq!(
        judge_supplies(10_000, 10_000, &Supplies::default()),
        Ok(()),
        "what is not known is not judged"
    );
    let missing = |users: usize, together: usize, supplies: Supplies| {
        judge_supplies(users, together, &supplies).unwrap_err()
    };
    assert!(missing(10_000, 10_000, Supplies { files: Some(4096), ..plenty }).contains("ulimit -n 10128"));
    assert!(missing(15_000, 30_000, plenty).contains("ip_local_port_range"));
    assert!(missing(10_000, 10_000, Supplies { memory_bytes: Some(300 << 20), ..plenty }).contains("MB"));
}
