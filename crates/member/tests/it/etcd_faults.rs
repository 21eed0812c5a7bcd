//! etcd that is killed, paused, or not there.

use std::time::{Duration, Instant};

use bytes::Bytes;
use scrinium_cluster::{Compare, Operation, Transaction};
use scrinium_member::{EtcdEngine, EtcdError, EtcdOptions};

use crate::etcd_server::{EtcdServer, block_on, free_port};

fn put(key: String) -> Transaction {
    let key = Bytes::from(key);
    Transaction {
        compares: vec![Compare::Absent { key: key.clone() }],
        then: vec![Operation::Put { key: key.clone(), value: key.clone() }],
        otherwise: vec![Operation::Get { key }],
    }
}

#[test]
fn what_was_answered_is_there_after_etcd_was_killed() {
    let Some(mut server) = EtcdServer::start(&[]) else { return };
    let engine = server.engine(Duration::from_secs(10));
    // One runtime for all rounds: connections live in it.
    block_on(async {
        for round in 0..3 {
            let mut answered = Vec::new();
            for number in 0..40 {
                let key = format!("k/{round}/{number}");
                if engine.ask(&put(key.clone())).await.is_ok_and(|reply| reply.succeeded) {
                    answered.push(key);
                }
                if number == 20 {
                    server.kill();
                    let lost = engine.ask(&put(format!("lost/{round}"))).await;
                    assert!(matches!(lost, Err(EtcdError::Unreachable { .. })), "{lost:?}");
                    assert!(engine.trouble().is_some());
                    assert!(server.run(), "etcd starts again");
                }
            }
            assert!(answered.len() >= 35, "{} of 40 after one of them failed", answered.len());
            for key in answered {
                let again = engine.ask(&put(key.clone())).await.unwrap();
                assert!(!again.succeeded, "{key} is there");
                assert_eq!(again.found[0][0].value, key);
            }
            assert_eq!(engine.trouble(), None);
        }
    });
}

#[test]
fn a_call_ends_in_its_time_while_etcd_is_paused_and_may_still_be_done() {
    let Some(server) = EtcdServer::start(&[]) else { return };
    block_on(async {
        let (engine, patient) =
            (server.engine(Duration::from_millis(700)), server.engine(Duration::from_secs(20)));
        patient.ask(&put("before".to_owned())).await.unwrap();
        server.pause();
        let begun = Instant::now();
        let late = engine.ask(&put("late".to_owned())).await;
        assert!(matches!(late, Err(EtcdError::Late { .. })), "{late:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        server.go_on();
        // Whichever came first has written it; both know so in the end.
        let settled = patient.ask(&put("late".to_owned())).await.unwrap();
        let again = patient.ask(&put("late".to_owned())).await.unwrap();
        assert!(settled.succeeded || settled.found[0][0].value == "late");
        assert!(!again.succeeded);
    });
}

#[test]
fn the_next_server_is_asked_after_a_failure() {
    let Some(server) = EtcdServer::start(&[]) else { return };
    block_on(async {
        let nowhere = format!("http://127.0.0.1:{}", free_port()).parse().unwrap();
        let addresses = vec![nowhere, server.address()];
        let call_within = Duration::from_secs(20);
        let engine = EtcdEngine::new(EtcdOptions { addresses, files: None, call_within }).unwrap();
        let first = engine.ask(&put("a".to_owned())).await;
        assert!(matches!(first, Err(EtcdError::Unreachable { .. })), "{first:?}");
        for number in 0..5 {
            engine.ask(&put(format!("b{number}"))).await.unwrap();
        }
    });
}

#[test]
fn what_is_no_etcd_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let answering = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    });
    block_on(async {
        let call_within = Duration::from_secs(5);
        let options = EtcdOptions { addresses: vec![address], files: None, call_within };
        let refused = EtcdEngine::new(options).unwrap().ask(&put("a".to_owned())).await;
        assert!(refused.is_err(), "{refused:?}");
    });
    answering.join().unwrap();
}
