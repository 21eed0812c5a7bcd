//! Settings of etcd's that a member does not rely on, and certificates on both sides.

use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use scrinium_cluster::{Keys, Transaction};
use scrinium_member::{
    EtcdAddress, EtcdAddressError, EtcdEngine, EtcdError, EtcdFiles, EtcdFinding, EtcdOptions, EtcdTlsError,
    EtcdWarning, Examination,
};

use crate::etcd_server::{EtcdServer, block_on};

const PATIENCE: Duration = Duration::from_secs(20);

fn examined(engine: &EtcdEngine) -> Examination {
    block_on(engine.examine(Keys::new("test", "main").unwrap().probe())).unwrap()
}

#[test]
fn an_etcd_that_syncs_is_relied_on() {
    let Some(server) = EtcdServer::start(&["--quota-backend-bytes", "8589934592"]) else { return };
    let Examination { nodes, findings, warnings } = examined(&server.engine(PATIENCE));
    assert_eq!(findings, []);
    assert_eq!(warnings, [EtcdWarning::NoSpareServer { servers: 1 }]);
    assert_eq!((nodes.len(), nodes[0].quota_bytes), (1, 8_589_934_592));
    assert!(nodes[0].version.starts_with("3.") && nodes[0].cluster_id != 0 && nodes[0].database_bytes > 0);
}

#[test]
fn an_etcd_that_does_not_sync_is_refused() {
    let Some(server) = EtcdServer::start(&["--unsafe-no-fsync"]) else { return };
    let findings = examined(&server.engine(PATIENCE)).findings;
    assert_eq!(findings, [EtcdFinding::DoesNotSync { address: server.address() }]);
    assert!(findings[0].to_string().contains("--unsafe-no-fsync"));
}

#[test]
fn a_small_quota_is_refused_and_two_etcds_are_told_apart() {
    let Some(small) = EtcdServer::start(&["--quota-backend-bytes", "536870912"]) else { return };
    let Some(other) = EtcdServer::start(&[]) else { return };
    let addresses = vec![small.address(), other.address()];
    let options = EtcdOptions { addresses, files: None, call_within: PATIENCE };
    let findings = examined(&EtcdEngine::new(options).unwrap()).findings;
    let quota = EtcdFinding::SmallQuota { address: small.address(), bytes: 536_870_912 };
    let two = EtcdFinding::TwoEtcds { address: other.address(), other: small.address() };
    assert!(findings.contains(&quota) && findings.contains(&two), "{findings:?}");
}

fn write(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// An authority, and two certificates by it: the server's and the member's.
fn certificates(folder: &Path) -> (Vec<String>, EtcdFiles) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let authorities = write(folder, "authority.pem", &authority.pem());
    let issue = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let issued = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        let issued = issued.signed_by(&key, &authority).unwrap();
        let certificate = write(folder, &format!("{name}.pem"), &issued.pem());
        (certificate, write(folder, &format!("{name}.key"), &key.serialize_pem()))
    };
    let (server, server_key) = issue("server");
    let (certificate, key) = issue("member");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let flags = [
        "--client-cert-auth".to_owned(),
        "--trusted-ca-file".to_owned(),
        path(&authorities),
        "--cert-file".to_owned(),
        path(&server),
        "--key-file".to_owned(),
        path(&server_key),
    ];
    (flags.into(), EtcdFiles { authorities, certificate, key })
}

#[test]
fn certificates_on_both_sides_say_who_may_connect() {
    let folder = tempfile::tempdir().unwrap();
    let (flags, files) = certificates(folder.path());
    let Some(server) = EtcdServer::start_secure(&flags, &files) else { return };
    assert_eq!(examined(&server.engine(PATIENCE)).findings, []);
    // Somebody with a certificate of another authority.
    let other = tempfile::tempdir().unwrap();
    let (_, strange) = certificates(other.path());
    let strange = EtcdFiles { authorities: files.authorities, ..strange };
    for files in [strange, certificates(other.path()).1] {
        let addresses = vec![server.address()];
        let options = EtcdOptions { addresses, files: Some(files), call_within: PATIENCE };
        let refused = block_on(EtcdEngine::new(options).unwrap().ask(&Transaction::default()));
        assert!(matches!(refused, Err(EtcdError::Unreachable { .. })), "{refused:?}");
    }
    let options = EtcdOptions { addresses: vec![server.address()], files: None, call_within: PATIENCE };
    assert!(matches!(EtcdEngine::new(options), Err(EtcdTlsError::Missing(_))));
}

#[test]
fn addresses_are_encrypted_or_on_this_machine() {
    for good in [
        "https://etcd.example.org:2379",
        "https://10.0.0.1:2379/",
        "http://127.0.0.1:2379",
        "http://[::1]:2379",
    ] {
        let address: EtcdAddress = good.parse().unwrap();
        assert_eq!(address.to_string(), good.trim_end_matches('/'));
    }
    for open in ["http://10.0.0.1:2379", "http://etcd.example.org:2379"] {
        assert_eq!(open.parse::<EtcdAddress>(), Err(EtcdAddressError::InTheClear(open.to_owned())));
    }
    for wrong in [
        "",
        "localhost:2379",
        "https://host",
        "https://host:0",
        "ftp://host:1",
        "https://a/b:1",
        "https://a@b:1",
        "https://[::1:1",
    ] {
        assert!(matches!(wrong.parse::<EtcdAddress>(), Err(EtcdAddressError::Form(_))), "{wrong}");
    }
}
