//! The page of benchmarks shows what was kept.

use scrinium_tidy::benchmarks::{Origin, keep, page};

#[test]
fn results_are_kept_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("benchmarks/pool.jsonl.part");
    std::fs::create_dir(folder.path().join("benchmarks")).unwrap();
    std::fs::write(
        &part,
        "{\"name\":\"pool\",\"case\":\"1 caller\",\"value\":175839.4,\"unit\":\"jobs/s\",\"against\":\"tokio\",\"ratio\":1.06,\"note\":null}\n\
         {\"name\":\"pool\",\"case\":\"a|b\",\"value\":0.5,\"unit\":\"ms\",\"runs\":7}\n",
    )
    .unwrap();
    let origin = Origin {
        machine: "2 × CPU, 16 GB".to_owned(),
        commit: "abc1234".to_owned(),
        command: "make bench NAME=pool".to_owned(),
        date: "2026-01-02".to_owned(),
    };
    keep(folder.path(), "pool", &origin).unwrap();
    assert!(!part.exists());
    let page = page(folder.path()).unwrap();
    let (_, section) = page.split_once("\n## ").unwrap();
    assert_eq!(
        section,
        "\
pool

`make bench NAME=pool`, 2026-01-02, commit abc1234, on 2 × CPU, 16 GB

| case | value | unit | against | ratio | runs |
| --- | --- | --- | --- | --- | --- |
| 1 caller | 175839 | jobs/s | tokio | 1.06 |  |
| a\\|b | 0.5 | ms |  |  | 7 |
"
    );

    std::fs::write(&part, "Compiling\n").unwrap();
    assert!(keep(folder.path(), "pool", &origin).is_err());
}
