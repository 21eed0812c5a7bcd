//! Members as processes of their own, and etcd: the leader is killed under load, again and again, and once etcd with it. Another one
//! leads, nothing that was acknowledged is lost, and all logs are one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use scrinium_cluster::{Engine, Overview};
use scrinium_fault::{Kills, Victim, tell};
use scrinium_log::{LogError, Sequence};
use scrinium_member::{EtcdEngine, EtcdOptions};

use crate::engines::Random;
use crate::etcd_server::{EtcdServer, block_on};
use crate::node::{Node, Told, beginning, keys, records, wait_for};

const CALL_WITHIN: Duration = Duration::from_millis(800);
const WRITERS: u64 = 3;

/// How much is stored between two kills.
const STORED_BETWEEN: u64 = 40;

fn folder_of(folder: &Path, member: u64) -> std::path::PathBuf {
    folder.join(member.to_string())
}

/// Takes part until it is killed. Whenever it leads it stores one record after the other, and tells how each ended.
#[test]
#[ignore = "a child of the tests of this module"]
fn child() {
    let Some((folder, number)) = Victim::order() else { return };
    let address = std::fs::read_to_string(folder.join("etcd")).unwrap().parse().unwrap();
    let options = EtcdOptions { addresses: vec![address], files: None, call_within: CALL_WITHIN };
    let engine = Arc::new(EtcdEngine::new(options).unwrap());
    let node = Node::start(&folder_of(&folder, number), number as u32, engine);
    tell("ready");
    let tried = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                loop {
                    let status = node.member.status();
                    assert_eq!(status.stop_reason, None, "etcd is honest");
                    if !status.takes_changes() {
                        std::thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                    let count = tried.fetch_add(1, Ordering::SeqCst);
                    let record = format!("{number}/{}/{count}", std::process::id());
                    match node.committer.commit(Bytes::from(record.clone())) {
                        Ok(Sequence(at)) => tell(format!("stored {at} {record}")),
                        Err(LogError::Refused { .. }) => tell(format!("refused 0 {record}")),
                        Err(LogError::Unknown { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
}

fn note(told: &mut Told, lines: &[String]) {
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, at, record] = words[..] else { continue };
        let record = Bytes::from(record.to_owned());
        match what {
            "stored" => told.stored.push((Sequence(at.parse().unwrap()), record)),
            "refused" => told.refused.push(record),
            other => panic!("{other}"),
        }
    }
}

/// Who leads, and since which epoch, and the number of the newest record.
fn seen(engine: &EtcdEngine) -> Option<(u64, u64, u64)> {
    let reply = block_on(engine.transact(Overview::transaction(&keys()))).ok()?;
    let overview = Overview::of(&keys(), reply).unwrap();
    let leader = overview.leader.unwrap();
    Some((u64::from(leader.leader.0), leader.epoch.0, overview.newest?.last().0))
}

#[test]
fn nothing_acknowledged_is_lost_when_leaders_are_killed() {
    let Some(mut server) = EtcdServer::start(&[]) else { return };
    let kills = Kills::from_environment(3);
    println!("{kills}");
    let mut random = Random::new(kills.seed);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("etcd"), server.address().to_string()).unwrap();
    let fresh = |server: &EtcdServer| server.engine(Duration::from_secs(5));
    assert!(block_on(fresh(&server).transact(beginning())).unwrap().succeeded);
    let start = |member: u64| {
        let victim = Victim::start(module_path!(), folder.path(), member).unwrap();
        victim.wait_until_ready().unwrap();
        Some(victim)
    };
    let mut victims: Vec<Option<Victim>> = (1..=3).map(start).collect();
    let (mut told, mut newest, mut former) = (Told::default(), 0, 1);
    for kill in 0..kills.count {
        // In the last round etcd goes at the same moment.
        let with_engine = kill + 1 == kills.count;
        let (leader, epoch) = wait_for("a leader that stores", || {
            let (leader, epoch, at) = seen(&fresh(&server))?;
            (epoch > former && at > newest + STORED_BETWEEN).then_some((leader, epoch))
        });
        std::thread::sleep(Duration::from_millis(random.below(300) as u64));
        if with_engine {
            server.kill();
        }
        let at = leader as usize - 1;
        note(&mut told, &victims[at].take().unwrap().kill().unwrap());
        let killed = Instant::now();
        if with_engine {
            assert!(server.run());
        }
        let again = random.chance(50);
        if again {
            victims[at] = start(leader);
        }
        (former, newest) = wait_for("another leader", || {
            let (_, next, at) = seen(&fresh(&server))?;
            (next > epoch).then_some((epoch, at))
        });
        println!("epoch {epoch} of member {leader} ended; another after {} ms", killed.elapsed().as_millis());
        if !again {
            victims[at] = start(leader);
        }
    }
    wait_for("the last leader stores", || {
        seen(&fresh(&server)).filter(|(_, epoch, at)| *epoch > former && *at > newest + STORED_BETWEEN)
    });
    for victim in victims.into_iter().flatten() {
        note(&mut told, &victim.kill().unwrap());
    }
    let logs: Vec<Vec<Bytes>> = (1..=3).map(|member| records(&folder_of(folder.path(), member))).collect();
    let lengths: Vec<usize> = logs.iter().map(Vec::len).collect();
    println!("{} stored, {} refused; logs of {lengths:?} records", told.stored.len(), told.refused.len());
    assert!(told.stored.len() as u64 > kills.count * STORED_BETWEEN / 2);
    told.check(&logs);
}
