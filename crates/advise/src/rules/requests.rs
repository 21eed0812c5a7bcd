//! Requests: threads, processors, connections, encryption, compression.

use crate::advice::{Advice, Gain, Unit};
use crate::observation::{Observation, enough};
use crate::rule::{Judgement, Rule, Subject, Support, Verdict};
use crate::words::{self, MB};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "pool-tasks",
        subject: Subject::Requests,
        title: "Have more threads for databases",
        speaks_if: "all threads were busy at once, the wait for one is a millisecond and 5 % of the time of requests or more, and the machine's processors are not busy",
        looks_at: &[
            "POOL_WAIT",
            "Server.Pool.Running.Peak",
            "Database.BufferPool.Maximum.Megabytes",
            "Platform.System.CPU.Seconds",
            "Platform.System.Processors",
        ],
        keys: &["server.pool_tasks", "memory.budget"],
        support: &[Support::Experiment("pool-tasks"), Support::Benchmark("pool")],
        until: "the wait for a thread is less than 5 % of the time of requests",
        check: pool_tasks,
    },
    Rule {
        name: "processors-busy",
        subject: Subject::Requests,
        title: "Relieve the processors",
        speaks_if: "the server uses 90 % of all processors or more",
        looks_at: &[
            "Platform.Process.CPU.Seconds",
            "Platform.System.Processors",
            "IO.Compact.Bytes",
            "IO.ViewUpdate.Bytes",
            "IO.Backup.Bytes",
        ],
        keys: &["io.limit_compact", "io.limit_view_update", "io.limit_backup"],
        support: &[Support::Experiment("capacity"), Support::Experiment("users")],
        until: "the server uses less than 90 % of the processors",
        check: processors_busy,
    },
    Rule {
        name: "compression",
        subject: Subject::Requests,
        title: "Do not compress answers",
        speaks_if: "answers are compressed while the server uses 75 % of all processors or more",
        looks_at: &["Platform.Process.CPU.Seconds", "Platform.System.Processors"],
        keys: &["http.compression", "https.compression"],
        support: &[Support::Experiment("configurations"), Support::Page("docs/reference/configuration.md")],
        until: "no port compresses, or the server uses less than 75 % of the processors",
        check: compression,
    },
    Rule {
        name: "refused",
        subject: Subject::Requests,
        title: "Admit more transactions",
        speaks_if: "requests were refused as too many (503)",
        looks_at: &[
            "Server.Trans.Refused",
            "Server.Trans.Total",
            "Platform.System.CPU.Seconds",
            "Platform.System.Processors",
        ],
        keys: &["server.max_concurrent_transactions", "server.max_waiting_transactions"],
        support: &[Support::Experiment("pool-tasks")],
        until: "Server.Trans.Refused does not grow",
        check: refused,
    },
    Rule {
        name: "connections",
        subject: Subject::Requests,
        title: "Take more connections",
        speaks_if: "there are nine tenths of the connections that a port may have",
        looks_at: &["Server.Users"],
        keys: &["http.max_connections"],
        support: &[Support::Experiment("memory-per-user"), Support::Benchmark("idle-memory")],
        until: "Server.Users is less than nine tenths of http.max_connections",
        check: connections,
    },
    Rule {
        name: "handshakes",
        subject: Subject::Requests,
        title: "Keep encrypted connections",
        speaks_if: "every second request, or more, comes on an encrypted connection of its own",
        looks_at: &["HTTP.Handshakes", "HTTP.Requests", "Platform.Process.CPU.Seconds"],
        keys: &["http.idle_timeout"],
        support: &[Support::Experiment("port-encryption")],
        until: "an encrypted connection serves more than two requests",
        check: handshakes,
    },
    Rule {
        name: "encryption",
        subject: Subject::Requests,
        title: "Encryption",
        speaks_if: "only to say that encrypted ports are no reason for slow answers",
        looks_at: &["HTTP.Handshakes", "HTTP.Requests"],
        keys: &["http.tls", "https.listen"],
        support: &[Support::Experiment("port-encryption")],
        until: "never: it asks for nothing",
        check: encryption,
    },
];

/// One thread for so much of the budget, and never fewer than four.
const BUDGET_OF_A_THREAD: f64 = 8.0 * MB;
const THREADS_MIN: f64 = 4.0;

/// What a greeting costs the server's processor, about: a signature and an agreement on keys.
const HANDSHAKE_MS: f64 = 1.0;

fn pool_tasks(seen: &Observation) -> Judgement {
    let wait = seen.operation("POOL_WAIT");
    enough(wait.count, 500.0, "jobs were seen")?;
    let tasks = seen.number("server.pool_tasks")?;
    let by_memory = (seen.now("Database.BufferPool.Maximum.Megabytes")? * MB / BUDGET_OF_A_THREAD)
        .floor()
        .max(THREADS_MIN);
    let (threads, peak) = (tasks.min(by_memory), seen.now("Server.Pool.Running.Peak")?);
    let (part, busy) = (seen.part_of_requests(wait.total_ms), seen.machine_busy()?);
    // To wake a thread takes less than that.
    let is_short = wait.average_ms() < 1.0 || part < 0.05;
    if is_short || peak < threads || busy >= 0.75 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        part * 0.7,
        "Requests wait for a thread although the processors have time: those that run wait for the disk or for each other.",
    )
    .saw_of("POOL_WAIT", "average", wait.average_ms(), Unit::Milliseconds)
    .saw_of("POOL_WAIT", "part of the time of requests", part * 100.0, Unit::Percent)
    .saw("Server.Pool.Running.Peak", peak, Unit::Count)
    .saw("server.pool_tasks", tasks, Unit::Count)
    .saw_of("Platform.System.CPU.Seconds", "of all processors", busy * 100.0, Unit::Percent)
    .wins(Gain::Response, part * 0.3, part);
    let advice = if tasks <= by_memory {
        advice.set("server.pool_tasks", format!("{:.0}", (tasks * 2.0).min(10_000.0)))
    } else {
        advice.set("memory.budget", words::size(threads * 2.0 * BUDGET_OF_A_THREAD))
    };
    Ok(Verdict::Change(Box::new(advice)))
}

fn processors_busy(seen: &Observation) -> Judgement {
    enough(seen.seconds, 10.0, "seconds were looked at")?;
    let busy = seen.processors_busy()?;
    if busy < 0.9 {
        return Ok(Verdict::Fine);
    }
    let mut advice = Advice::new(
        0.35,
        "The processors are the bottleneck: each request waits for those before it, and no other setting helps much.",
    )
    .saw_of("Platform.Process.CPU.Seconds", "of all processors", busy * 100.0, Unit::Percent)
    .saw("Platform.System.Processors", seen.now("Platform.System.Processors")?, Unit::Count)
    .wins(Gain::Response, 0.1, 0.5);
    let classes = [
        ("IO.Compact.Bytes", "io.limit_compact"),
        ("IO.ViewUpdate.Bytes", "io.limit_view_update"),
        ("IO.Backup.Bytes", "io.limit_backup"),
    ];
    for (statistic, key) in classes {
        let a_second = seen.grew(statistic)? / seen.seconds;
        if a_second >= MB {
            advice = advice
                .saw_of(statistic, "a second", a_second, Unit::Bytes)
                .set(key, words::size(a_second / 2.0));
        }
    }
    let advice = advice.by_hand(
        "Look for what takes the most (show transactions, show databases); then more processors, or a part of the users \
         or databases on another server.",
    );
    Ok(Verdict::Change(Box::new(advice)))
}

fn compression(seen: &Observation) -> Judgement {
    let compressed: Vec<&str> = ["http.compression", "https.compression"]
        .into_iter()
        .filter(|key| seen.flag(key).unwrap_or_default())
        .filter(|key| *key == "http.compression" || has_encrypted_port(seen))
        .collect();
    let busy = seen.processors_busy()?;
    if compressed.is_empty() || busy < 0.75 {
        return Ok(Verdict::Fine);
    }
    let mut advice = Advice::new(
        0.12,
        "Compressing answers costs processor time, which is short, and saves network, which is worth it only on slow lines.",
    )
    .saw_of("Platform.Process.CPU.Seconds", "of all processors", busy * 100.0, Unit::Percent)
    .wins(Gain::Processor, 0.0, 0.2);
    for key in compressed {
        advice = advice.saw_text(key, "true").set(key, "false");
    }
    Ok(Verdict::Change(Box::new(advice)))
}

fn refused(seen: &Observation) -> Judgement {
    let (refused, total) = (seen.grew("Server.Trans.Refused")?, seen.grew("Server.Trans.Total")?);
    if refused < 1.0 {
        return Ok(Verdict::Fine);
    }
    let (part, busy) = (refused / (refused + total), seen.machine_busy()?);
    let admitted = seen.number("server.max_concurrent_transactions")?;
    let waiting = seen.number("server.max_waiting_transactions")?;
    let advice = Advice::new(
        0.3 + part * 0.6,
        "Requests were refused because the server was busy, and had to be repeated.",
    )
    .saw("Server.Trans.Refused", refused, Unit::Count)
    .saw_of("Server.Trans.Refused", "of all", part * 100.0, Unit::Percent)
    .saw("server.max_concurrent_transactions", admitted, Unit::Count)
    .saw_of("Platform.System.CPU.Seconds", "of all processors", busy * 100.0, Unit::Percent);
    let advice = if busy >= 0.75 {
        advice.by_hand(
            "The processors are busy, so admitting more would make all wait longer: more processors, or fewer users on this server.",
        )
    } else {
        advice
            .set("server.max_concurrent_transactions", format!("{:.0}", (admitted * 2.0).min(1e6)))
            .set("server.max_waiting_transactions", format!("{:.0}", (waiting * 2.0).clamp(100.0, 1e6)))
    };
    Ok(Verdict::Change(Box::new(advice)))
}

fn connections(seen: &Observation) -> Judgement {
    let (users, limit) = (seen.now("Server.Users")?, seen.number("http.max_connections")?);
    if users < limit * 0.9 {
        return Ok(Verdict::Fine);
    }
    let advice = Advice::new(
        0.4,
        "Past the limit a connection waits until another one is closed, which may be minutes; one at rest takes some 22 KB.",
    )
    .saw("Server.Users", users, Unit::Count)
    .saw("http.max_connections", limit, Unit::Count)
    .set("http.max_connections", format!("{:.0}", (limit * 2.0).min(1e6)));
    Ok(Verdict::Change(Box::new(advice)))
}

fn handshakes(seen: &Observation) -> Judgement {
    let (greetings, requests) = (seen.grew("HTTP.Handshakes")?, seen.grew("HTTP.Requests")?);
    if greetings == 0.0 {
        return Ok(Verdict::Fine);
    }
    enough(requests, 200.0, "requests were seen")?;
    if greetings < requests * 0.5 {
        return Ok(Verdict::Fine);
    }
    let used_ms = seen.grew("Platform.Process.CPU.Seconds")? * 1000.0;
    let part = (greetings * HANDSHAKE_MS / used_ms.max(1.0)).min(0.8);
    let idle_s = seen.number("http.idle_timeout")?;
    let advice = Advice::new(
        part * 0.7,
        "Beginning an encrypted connection costs more than a request on one that is there: encryption is cheap only for \
         clients that keep theirs.",
    )
    .saw("HTTP.Handshakes", greetings, Unit::Count)
    .saw("HTTP.Requests", requests, Unit::Count)
    .saw("http.idle_timeout", idle_s, Unit::Seconds)
    .wins(Gain::Processor, part * 0.3, part);
    let advice = if idle_s < 300.0 {
        advice.set("http.idle_timeout", "5 min")
    } else {
        advice.by_hand(
            "Have clients, or the proxy before the server, keep their connections (keep-alive, HTTP/2).",
        )
    };
    Ok(Verdict::Change(Box::new(advice)))
}

fn encryption(seen: &Observation) -> Judgement {
    if !has_encrypted_port(seen) {
        return Ok(Verdict::Fine);
    }
    let (greetings, requests) = (seen.grew("HTTP.Handshakes")?, seen.grew("HTTP.Requests")?);
    if greetings * 2.0 >= requests {
        return Ok(Verdict::Fine);
    }
    Ok(Verdict::Note(
        "Encrypted ports need not be switched off: on connections that are kept, encryption costs some percent of \
         processor time."
            .to_owned(),
    ))
}

fn has_encrypted_port(seen: &Observation) -> bool {
    let listens = |key: &str| {
        seen.setting(key).ok().and_then(|value| value.as_array()).is_some_and(|all| !all.is_empty())
    };
    seen.flag("http.tls").unwrap_or_default() || listens("https.listen")
}
