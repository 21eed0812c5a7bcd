//! The table of all keys. Everything else that is known of the configuration is derived from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::checks;
use super::key::{Change, Key, Section, Setting, configuration, domino_name, type_of};
use super::mail_domain;
use super::value::{Kind, Value};
use super::volume::VolumeSettings;

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;
const GB: u64 = 1024 * MB;
const TB: u64 = 1024 * GB;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);
const CENTURY: Duration = Duration::from_secs(36_500 * 86_400);

configuration! {
    [volumes: BTreeMap<String, VolumeSettings>, "Further stores, by name."]
    /// The server as a whole, and how much it does at once.
    server as ServerSettings {
        /// The folder that holds everything the server keeps. A relative path begins where the server is
        /// started; the other paths of this file begin in this folder.
        data_dir: Path = "data", File, domino "Directory";
        /// The name by which the server calls itself towards people and other servers. Empty: the name
        /// of the machine.
        name: Text { form: "a host name, or empty", check: checks::host_name_or_empty } = "", Restart,
            domino "ServerName";
        /// Jobs on databases that run at once, each on a thread of its own. More than the processors and
        /// disks can serve only makes each wait longer. With a small `memory.budget` there are fewer, one for each
        /// 8 MB of it, and no fewer than 4, since each thread holds memory of its own.
        pool_tasks: Integer { min: 1, max: 10_000 } = "100", Running, domino "SERVER_POOL_TASKS";
        /// Transactions that are admitted at once. One that waits for the log to be written is admitted
        /// but uses no pool task, so this is the larger number.
        max_concurrent_transactions: Integer { min: 1, max: 1_000_000 } = "1000", Running,
            domino "SERVER_MAX_CONCURRENT_TRANS";
        /// Transactions that may wait for admission. Past that the server answers that it is busy (503),
        /// so that those it has begun end in time.
        max_waiting_transactions: Integer { min: 0, max: 1_000_000 } = "4000", Running;
        /// The longest that a transaction waits for admission before it is refused because the server is busy.
        admission_timeout: Duration { min: Duration::from_millis(1), max: HOUR } = "10 s", Restart;
        /// The longest that the server waits at its end for transactions that it has begun. Nothing that
        /// was acknowledged is lost if it is killed instead.
        shutdown_timeout: Duration { min: Duration::ZERO, max: HOUR } = "30 s", Restart;
        /// Threads that serve network connections. 0: one for each processor.
        network_threads: Integer { min: 0, max: 1024 } = "0", Restart;
    }

    /// The transaction log: every change is written to it first, and is durable from then on.
    log as LogSettings {
        /// The folder of the log. On a device of its own, writing the log does not wait for anything else.
        dir: Path = "log", File, domino "TRANSLOG_Path";
        /// Whether changes go into the log, and what becomes of it. `circular`: its files are used again once what
        /// they hold is in the databases' own files. `archive`: they are copied to log.archive_dir before, so that a
        /// backup can be brought forward to any moment (docs/operate/backup.md). `off`: a change is durable when those files hold it, which takes longer;
        /// all that wait share it. Changing it keeps all data. A single database stays out of the log by its
        /// property `logged` (docs/operate/logging.md).
        style: Choice { options: &["circular", "archive", "off"] } = "circular", Restart, domino "TRANSLOG_Style";
        /// Where the log is copied with `log.style = archive`, best on another device, as all backups. A folder
        /// outside the data folder must be there: it is not made, since its device may be missing.
        archive_dir: Path = "archive", File;
        /// How often what was written to the log last is archived, in addition to whole files. It is what can be lost with
        /// the devices of data and log. 0: whole files only.
        archive_every: Duration { min: Duration::ZERO, max: DAY } = "1 min", Restart;
        /// What is favored: `runtime` writes the least while running, and a restart after a crash may have to do
        /// some 1 GB of the log again; `standard` 256 MB; `restart` 64 MB. `show server` tells how much and how
        /// long it would be now.
        favor: Choice { options: &["runtime", "standard", "restart"] } = "standard", Running,
            domino "TRANSLOG_Performance";
        /// The most that the log takes on disk; at least three extents. When half of it is needed, changes are
        /// brought into the databases' own files, and when all of it is, who changes something waits for that.
        /// 0: all that there is.
        max_size: Bytes { min: 0, max: TB } = "4 GB", Restart, domino "TRANSLOG_MaxSize";
        /// The size of one file (extent) of the log. Extents are filled in order and used again.
        extent_bytes: Bytes { min: MB, max: GB } = "64 MB", Restart;
        /// Emptied extents that are kept to be used again, since writing over an old extent is faster
        /// than growing a new one.
        spare_extents: Integer { min: 0, max: 64 } = "2", Restart;
        /// Whether the log is written past the system's file cache, where the file system takes it.
        direct_io: Boolean = "true", Restart;
        /// Changes that may wait for the log to be written. Past that, those who change wait.
        queue_bytes: Bytes { min: MB, max: 16 * GB } = "64 MB", Restart;
    }

    /// When changes that stand in the log are also written to the databases' own files.
    checkpoint as CheckpointSettings {
        /// Log written between two checkpoints, in place of what `log.favor` says: more favors running (fewer
        /// writes), less favors restarting (less to do again). 0: what `log.favor` says.
        log_bytes: Bytes { min: 0, max: TB } = "0", Restart;
    }

    /// The memory that databases may use.
    memory as MemorySettings {
        /// Memory for blocks of databases, for changes not yet in their files, for the trees of views' indexes, for
        /// views that are built and for whatever reads them; a size, or a percentage of the machine's (or the
        /// container's) memory. `show memory` tells what it is used for; docs/operate/memory.md tells how to size it.
        budget: Memory { min: 16 * MB } = "25 %", Running, domino "NSF_BUFFER_POOL_SIZE_MB";
    }

    /// The system's cache of files, in addition to the server's own memory.
    file_cache as FileCacheSettings {
        /// Whether the databases' files are read through the system's cache (`system`) or past it (`direct`), where the
        /// file system takes that. Past it, memory is used once, by `memory.budget`, which should then be most of the
        /// machine's; what is not there is read from the disk.
        mode: Choice { options: &["system", "direct"] } = "system", Restart;
        /// With `system`: if the databases' files take more than this when the server starts, they are read past the
        /// cache all the same, so that they do not push out what others need. Databases share files, so it is all of
        /// them or none. 0: never.
        threshold: Bytes { min: 0, max: 1024 * TB } = "0", Restart, domino "DEBUG_FileSizeThreshold";
        /// When making a file of the log durable takes this long or longer, the file and the time are logged as
        /// a warning and counted (`FileCache.Sync.Slow`). 0: never.
        sync_report: Duration { min: Duration::ZERO, max: HOUR } = "2 s", Running, domino "DEBUG_FileSyncThreshold";
    }

    /// The disk that databases are on.
    disk as DiskSettings {
        /// Free space that is left alone: with less than this, changes are refused (507) and reading
        /// continues, so that there is room to put in order what was accepted. Indexes, and deleting
        /// documents and databases, may use half of it.
        reserve_bytes: Bytes { min: 0, max: TB } = "256 MB", Restart;
    }

    /// What long and background work reads and writes. It gives way while requests wait, whatever the limits; a request is
    /// never held. `show statistics IO` tells what each kind of work has done and how long it was held.
    io as IoSettings {
        /// What a long scan reads ahead at once: builds of views, checks, moves, and merging of files, which keeps to what
        /// was set when the server started. More suits disks that turn. 0: by the memory, 256 KB to 2 MB.
        read_ahead: Bytes { min: 0, max: 16 * MB } = "0", Running;
        /// Bytes a second that builds of views read, at most. 0: no limit.
        limit_view_update: Bytes { min: 0, max: TB } = "0", Running;
        /// Bytes of files that are compacted in a second, at most; less disturbs others less and takes longer. 0: no
        /// limit.
        limit_compact: Bytes { min: 0, max: TB } = "0", Running;
        /// Bytes a second that backups copy, at most. One that is given with a backup holds for it as well. 0: no limit.
        limit_backup: Bytes { min: 0, max: TB } = "0", Running;
        /// Bytes a second that moves of databases between volumes read and write, at most. 0: no limit.
        limit_move: Bytes { min: 0, max: TB } = "0", Running;
        /// Bytes a second of attachments that are moved to another store or back (`load attachments`), at most. 0: no limit.
        limit_attachments: Bytes { min: 0, max: TB } = "0", Running;
    }

    /// Views and their indexes.
    view as ViewSettings {
        /// The folder for sorted files while views are built whose entries do not fit into memory; put on
        /// a fast device of its own, or on a RAM disk that is large enough, it relieves the databases'.
        rebuild_dir: Path = "rebuild", File, domino "View_Rebuild_Dir";
        /// How old a view may be that depends on the time (`@Now`, `@Today`). Then reading it evaluates all
        /// its documents again, since the formulas may give another result for any of them.
        time_variant_refresh: Duration { min: Duration::ZERO, max: DAY } = "15 min", Running;
        /// The index of a view or folder that nobody has read for this long is discarded, and built again
        /// when it is read. It is looked for once an hour. 0: never.
        discard_after: Duration { min: Duration::ZERO, max: YEAR } = "45 d", Running,
            domino "Default_Index_Lifetime_Days";
    }

    /// Functions in JavaScript, of views and of `validate_doc_update`, which run in processes of their own (docs/operate/javascript.md).
    javascript as JavascriptSettings {
        /// Processes at most; one database has half of them at most. They are started when they are needed, and end when
        /// nobody has needed them for five minutes. 0: two for each processor, and four at least.
        processes_max: Integer { min: 0, max: 1024 } = "0", Running;
        /// Memory of the engine in a process, which what a function makes has to fit in. A process takes some 15 MB in addition,
        /// and while it has large documents up to as much again.
        memory: Bytes { min: 4 * MB, max: GB } = "64 MB", Running;
        /// Processor time that one call of a function may take: one document in one view, one reduction, one edit that is
        /// validated.
        call_timeout: Duration { min: Duration::from_millis(10), max: HOUR } = "5 s", Running;
    }

    /// Compacting: returning to the disk what was overwritten and deleted, while everybody keeps working.
    compact as CompactSettings {
        /// When databases are compacted that have gathered garbage, every day, such as `02:00-05:00`; what is not done
        /// by its end continues the next day. Empty: only when somebody says so.
        window: Text { form: "HH:MM-HH:MM, or empty", check: checks::window_or_empty } = "02:00-05:00", Running;
        /// The time zone of the window, such as `Europe/Berlin`. Empty: the machine's.
        time_zone: Text { form: "a time zone, or empty", check: checks::time_zone_or_empty } = "", Running;
        /// Within the window, databases are compacted of which at least this many percent, and at least 16 MB, are garbage.
        garbage_percent: Integer { min: 1, max: 100 } = "30", Running, domino "compact -S";
        /// Tombstones of deleted documents, and of what has left folders, are purged after this time, as far as all
        /// replicas that are known have seen them. A client that was away for longer learns of no deletion. 0: never.
        purge_after: Duration { min: Duration::ZERO, max: CENTURY } = "365 d", Running,
            domino "purge interval";
    }

    /// Backups that the running server makes and restores from (docs/operate/backup.md).
    backup as BackupSettings {
        /// The folders, outside the data folder, and `s3://BUCKET/PREFIX`, that a running server makes backups in and
        /// restores databases from when the console or `scrinium backup` says so. Any other place is refused. With one
        /// alone, `load backup` needs no place.
        targets: TextList { form: "a folder (an absolute path) or s3://BUCKET/PREFIX", check: checks::backup_target } = "",
            File;
        /// The public key that backups are encrypted to, such as `age1...`: the server then cannot read its own backups, and
        /// neither can a holder of them. `scrinium backup keygen FILE` makes a pair; keep the private key elsewhere, and
        /// twice. Empty: backups are not encrypted.
        recipient: Text { form: "a public key of age, or empty", check: checks::recipient_or_empty } = "", File;
        /// The file of the private key, while the running server is to restore a database from an encrypted backup (`load
        /// restore`). Take it away again afterwards. Empty: it is not there, as it should be.
        identity: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
    }

    /// Limits of documents.
    document as DocumentSettings {
        /// The largest document, attachments not counted. A larger one is answered with 413.
        max_bytes: Bytes { min: KB, max: 32 * MB } = "8 MB", Running;
    }

    /// Limits of attachments.
    attachment as AttachmentSettings {
        /// The largest attachment. A larger one is answered with 413.
        max_bytes: Bytes { min: KB, max: TB } = "1 GB", Running;
        /// Where large attachments are put: `volume`, with the documents; `s3://BUCKET/PREFIX`, a store of objects that
        /// speaks S3; or `file:///FOLDER`, a folder, such as that of a file server. Those that are there stay where
        /// they are until `load attachments` moves them (docs/operate/attachments.md).
        store: Text { form: "volume, s3://BUCKET/PREFIX or file:///FOLDER", check: checks::attachment_store } =
            "volume", File;
        /// With an attachment.store: attachments of this size and more go there.
        threshold: Bytes { min: 256 * KB, max: TB } = "1 MB", Running;
        /// What was read of attachment.store is kept on this machine, up to this size. 0: nothing.
        cache: Bytes { min: 0, max: 1024 * TB } = "1 GB", Running;
        /// The folder of that cache, and of attachments that are on their way to attachment.store. What it holds can
        /// be lost.
        cache_dir: Path = "attachments", File;
        /// What no document refers to any more stays in attachment.store for this long, so that what is restored from
        /// a backup of that time finds it.
        keep_removed: Duration { min: Duration::ZERO, max: CENTURY } = "7 d", Running;
        /// How often contents are looked for that no document refers to any more, and dropped databases are cleared away.
        collect_every: Duration { min: Duration::from_secs(1), max: DAY } = "30 s", Restart;
    }

    /// The HTTP port: documents, views, statistics and the console.
    http as HttpSettings {
        /// Where the port listens. Addresses other than this machine's own are best used with TLS.
        listen: Addresses { at_least: 1 } = "127.0.0.1:5984", File, domino "HTTP port number";
        /// Whether the port is encrypted.
        tls: Boolean = "false", File, domino "port encryption";
        /// The certificate, with those that lead to its issuer, as PEM.
        tls_certificate: Path = "tls/certificate.pem", File;
        /// The certificate's private key, as PEM.
        tls_key: Path = "tls/key.pem", File;
        /// Whether answers are compressed (zstd, gzip) for clients that ask for it. It saves network and
        /// costs processor.
        compression: Boolean = "false", Restart, domino "network compression";
        /// Web sites whose pages may use the port (CORS), such as `https://example.com`; `*` is every
        /// site. Empty: none.
        cors_origins: TextList { form: "an origin (https://example.com) or *", check: checks::origin } = "",
            File;
        /// Whether pages of those sites may send cookies and passwords.
        cors_credentials: Boolean = "false", File;
        /// The largest body of a request that holds documents; attachments have their own limit.
        max_request_bytes: Bytes { min: MB, max: 4 * GB } = "64 MB", Restart;
        /// Memory for the bodies of all requests together. Past that, requests are answered with 503.
        body_budget_bytes: Bytes { min: MB, max: TB } = "256 MB", Restart;
        /// The longest head of a request.
        max_header_bytes: Bytes { min: 8 * KB, max: MB } = "64 KB", Restart;
        /// Proxies that are believed when they say who asks: networks such as `10.0.0.0/8` or `::1`. They may send a PROXY
        /// header (versions 1 and 2) before all else, or `Forwarded` (RFC 7239), or `X-Forwarded-For` and
        /// `X-Forwarded-Proto`, which tell the client's address and whether it used https. From everybody else these
        /// are ignored. Empty: none.
        trusted_proxies: TextList { form: "a network (10.0.0.0/8) or an address", check: checks::network } = "",
            File;
        /// Connections of all ports at once, at most; fewer where the system's limit of open files is smaller
        /// (`ulimit -n`; the server raises it as far as it may). When all are taken, the one that has been idle for
        /// longest is closed for a new one; if none is idle, new ones wait to be accepted.
        max_connections: Integer { min: 1, max: 1_000_000 } = "20000", Restart, domino "SERVER_MAXSESSIONS";
        /// Requests of one HTTP/2 connection at once.
        max_streams: Integer { min: 1, max: 1000 } = "128", Restart;
        /// The longest that the head of a request may take, and the longest pause within its body.
        read_timeout: Duration { min: SECOND, max: HOUR } = "30 s", Restart;
        /// The longest that a client may take nothing of an answer. Then its connection is closed, or its stream of an
        /// HTTP/2 connection is reset.
        write_timeout: Duration { min: SECOND, max: HOUR } = "60 s", Restart;
        /// A connection without requests is closed after this time.
        idle_timeout: Duration { min: SECOND, max: DAY } = "5 min", Restart;
        /// How long `_changes` waits for a change where the client does not say.
        changes_timeout: Duration { min: SECOND, max: DAY } = "60 s", Restart;
        /// A file in which every request is written down: time, operation, bytes and milliseconds, with person and
        /// database as numbers that mean nothing elsewhere, and no contents. `lab capture` makes a workload of it
        /// (docs/reference/workloads.md). Empty: none.
        operation_log: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
        /// The size at which that file is put aside, with `.1` at its end, in place of the one before it.
        operation_log_bytes: Bytes { min: MB, max: TB } = "256 MB", Restart;
    }

    /// The encrypted HTTP port, besides the other one: the same limits, with separate switches.
    https as HttpsSettings {
        /// Where the encrypted port listens, such as `0.0.0.0:6984`. Empty: there is none.
        listen: Addresses { at_least: 0 } = "", File, domino "SSL port number";
        /// Whether answers of this port are compressed for clients that ask for it.
        compression: Boolean = "false", Restart;
    }

    /// Certificates that an authority gives by itself (ACME, RFC 8555), for all ports, renewed by themselves (docs/operate/certificates.md).
    acme as AcmeSettings {
        /// The authority's directory, such as `https://acme-v02.api.letsencrypt.org/directory`. Empty: no certificates are ordered.
        directory: Text { form: "the address of a directory, or empty", check: checks::https_or_empty } = "", File;
        /// Whether you have read the authority's terms and agree to them.
        terms_agreed: Boolean = "false", File;
        /// The names in the certificate. Empty: `discovery.host_name`, or else `smtp.host_name` or `server.name`.
        names: TextList { form: "a host name, or *. and one with dns-01", check: checks::certificate_name } = "", File;
        /// An address to which the authority may write. Empty: none.
        contact: Text { form: "an address, or empty", check: checks::anything } = "", File;
        /// How it is proven that the names are this server's. `tls-alpn-01`: at port 443, which leads to `https.listen`. `http-01`: at port 80,
        /// which leads to `http.listen`. `dns-01`: in DNS, by `acme.dns_hook`.
        challenge: Choice { options: &["tls-alpn-01", "http-01", "dns-01"] } = "tls-alpn-01", File;
        /// The program that writes proofs into DNS: it is run with `set NAME VALUE`, and NAME is to have a TXT record with VALUE; later with
        /// `clear NAME VALUE`.
        dns_hook: Path = "dns-hook", File;
        /// How long it takes until all name servers of the domain know what that program has written.
        dns_wait: Duration { min: Duration::ZERO, max: Duration::from_secs(600) } = "60 s", File;
        /// A file with the certificate (PEM) of the authority that has signed the directory's own, in place of those that the system knows.
        /// Empty: the system's.
        ca_file: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
    }

    /// Replications that this server carries out (docs/operate/replication.md).
    replication as ReplicationSettings {
        /// Networks that replications may go to although they are of this machine (`127.0.0.0/8`, `::1`) or of its own wire
        /// (`169.254.0.0/16`, `fe80::/10`): who orders a replication makes the server connect to what they name.
        /// This server's own HTTP ports are allowed without being named.
        allowed_networks: TextList { form: "a network (10.0.0.0/8) or an address", check: checks::network } = "",
            File;
        /// Replications at a time, those that wait for changes among them.
        max_jobs: Integer { min: 1, max: 100_000 } = "5000", Restart;
        /// Batches of documents that are under way at a time, of all replications together; each holds some MB of memory.
        max_batches: Integer { min: 1, max: 1000 } = "16", Restart;
    }

    /// What one network may hold before log-in, and one person after it, at once. Administrators of the server are bound
    /// by the limits of the whole server only.
    limits as LimitSettings {
        /// How many bits of an IPv4 address name a network.
        ipv4_bits: Integer { min: 8, max: 32 } = "32", Restart;
        /// How many bits of an IPv6 address name a network. Providers give each customer 64, or fewer.
        ipv6_bits: Integer { min: 16, max: 128 } = "64", Restart;
        /// Connections of a network on which nobody has logged in. Over it, the one that has been idle for longest is
        /// closed, and the new one is taken.
        network_connections: Integer { min: 1, max: 1_000_000 } = "512", Restart;
        /// Requests of a network before log-in. More are answered with 429.
        network_requests: Integer { min: 1, max: 1_000_000 } = "128", Restart;
        /// Memory for answers of a network before log-in, its requests, and messages that it is bringing.
        network_bytes: Bytes { min: MB, max: TB } = "16 MB", Restart;
        /// Temporary files for messages that a network is bringing and for which there is no memory. Past that it is to try
        /// again later (452).
        network_file_bytes: Bytes { min: MB, max: TB } = "256 MB", Restart;
        /// Pool tasks that work for a network before log-in; more wait.
        network_threads: Integer { min: 1, max: 10_000 } = "16", Restart;
        /// Log-ins of a network that wait or are checked. More are answered with 429.
        network_logins: Integer { min: 1, max: 100_000 } = "400", Restart;
        /// Connections of a person. Over it, the one that has been idle for longest is closed.
        person_connections: Integer { min: 1, max: 1_000_000 } = "512", Restart;
        /// Requests of a person, open feeds among them. More are answered with 429.
        person_requests: Integer { min: 1, max: 1_000_000 } = "256", Restart;
        /// Feeds of changes (`_changes` that waits) of a person, on all devices. More are answered with 429.
        person_feeds: Integer { min: 1, max: 1_000_000 } = "128", Restart;
        /// Memory for requests of a person, and for answers that were not taken yet. One answer is always given.
        person_bytes: Bytes { min: MB, max: TB } = "128 MB", Restart;
        /// Temporary files for messages that a person hands in and for which there is no memory. Past that the person is to try
        /// again later (452).
        person_file_bytes: Bytes { min: MB, max: TB } = "1 GB", Restart;
        /// Pool tasks (`server.pool_tasks`) that work for a person; more wait, and hold nobody else up.
        person_threads: Integer { min: 1, max: 10_000 } = "50", Restart;
    }

    /// Logging in with a name and a password.
    login as LoginSettings {
        /// After this many wrong passwords for one name from one network, within `login.lock_for`, that name is locked for
        /// that network (403). From other networks its owner logs in as ever.
        lock_after: Integer { min: 1, max: 32 } = "5", File;
        /// How long a wrong password counts, and how long the lock holds.
        lock_for: Duration { min: SECOND, max: DAY } = "5 min", File;
        /// After this many failures of one network, whatever the names, its further log-ins are delayed. One of them is
        /// forgotten in each part of `login.lock_for`. Names that have logged in from there before are not delayed.
        delay_after: Integer { min: 1, max: 1_000_000 } = "10", File;
        /// The first delay; each further failure doubles it. 0: none.
        delay_first: Duration { min: Duration::ZERO, max: HOUR } = "2 s", File;
        /// The longest delay.
        delay_most: Duration { min: Duration::ZERO, max: HOUR } = "15 s", File;
        /// Threads on which passwords are checked, each with 19 MB. 0: one for two processors.
        hashing_threads: Integer { min: 0, max: 1024 } = "0", Restart;
        /// Networks whose log-ins may wait for these threads; they take turns. More are answered with 429. 0: as many as take
        /// about a second.
        waiting: Integer { min: 0, max: 100_000 } = "0", Restart;
        /// The least length of a password that is set, in bytes.
        password_bytes: Integer { min: 1, max: 128 } = "8", File;
    }

    /// People who have logged in by a form (cookie).
    session as SessionSettings {
        /// A session ends when it was not used for this long.
        timeout: Duration { min: SECOND, max: YEAR } = "10 min", Restart,
            domino "idle session timeout";
        /// A session ends at this age, however much it is used.
        max_age: Duration { min: SECOND, max: YEAR } = "30 d", File;
        /// The same for administrators of the server.
        max_age_administrators: Duration { min: SECOND, max: YEAR } = "24 h", File;
    }

    /// Signing in at pages, with a second step where the account has one (docs/operate/people.md).
    sign_in as SignInSettings {
        /// The address at which people sign in, such as `https://mail.example.org`. Passkeys belong to its host: another one
        /// loses them. Empty: passkeys are not offered.
        url: Text { form: "the address of a site, or empty", check: checks::site_or_empty } = "", File;
    }

    /// Tokens of services (JWT), by which a program that has a key here says who somebody is and which roles they have, as
    /// CouchDB's `jwt_keys` and `jwt_auth` mean it.
    jwt_keys as JwtKeySettings {
        /// A file of keys, a line each: `hmac:ID = BASE64`, `rsa:ID = PEM` or `ec:ID = PEM`; the id `_default` is for tokens that name
        /// none. Empty: tokens let nobody in.
        file: Text { form: "a path, or empty", check: checks::anything } = "", File;
        /// Claims that a token must have, and, after `=`, what they must say. `exp`, `nbf` and `iat` are checked in any case.
        required_claims: TextList { form: "a claim, or claim=value", check: checks::anything } = "exp", File;
        /// Where a token says the roles: a claim, or a path of names with dots in between.
        roles_claim: Text { form: "the name of a claim", check: checks::anything } = "_couchdb.roles", File;
    }

    /// A proxy that says who asks, by CouchDB's headers `X-Auth-CouchDB-UserName`, `-Roles` and `-Token`. They count from
    /// `http.trusted_proxies` alone.
    proxy_auth as ProxyAuthSettings {
        /// A file whose first line is the secret that the proxy shares with this server, 32 bytes or more; the token is the HMAC-SHA256
        /// of the name by it. Empty: no proxy says who asks.
        secret_file: Text { form: "a path, or empty", check: checks::anything } = "", File;
    }

    /// A provider of OpenID Connect, at which people sign in and whose access tokens let programs in (`Authorization: Bearer`).
    oidc as OidcSettings {
        /// The provider, exactly as it calls itself, such as `https://id.example.org/realms/acme`. Empty: there is none.
        issuer: Text { form: "the provider's address, or empty", check: checks::issuer_or_empty } = "", File;
        /// The id that the provider gave this server, so that people can sign in there at pages; it sends them back to `sign_in.url`
        /// with `/_session/provider/callback`. Empty: they cannot.
        client_id: Text { form: "an id, or empty", check: checks::anything } = "", File;
        /// A file whose first line is the secret that the provider gave this server. Empty: it gave none (a public client).
        client_secret_file: Text { form: "a path, or empty", check: checks::anything } = "", File;
        /// What the provider is asked for besides `openid`.
        scopes: TextList { form: "a scope", check: checks::scope } = "email", File;
        /// What the provider calls this server (`aud`) in access tokens, which programs show; a token must be for one of them.
        audiences: TextList { form: "an audience", check: checks::anything } = "", File;
        /// Which claim of a token names a person here: `email` where the provider has verified it, `preferred_username` where nobody
        /// can choose another's, or `none`: only accounts that are linked.
        name_claim: Choice { options: &["email", "preferred_username", "none"] } = "email", File;
        /// Whether a token counts as two factors: `always`, where it says so (`amr` has `mfa`: `claimed`), or `never`.
        second_factor: Choice { options: &["never", "claimed", "always"] } = "never", File;
    }

    /// A directory elsewhere that people and groups are kept in step with, by LDAP (docs/operate/names.md).
    people_source as PeopleSourceSettings {
        /// Its server, such as `ldaps://ldap.example.org` or `ldap://ldap.example.org`. Empty: there is none.
        url: Text { form: "an address, or empty", check: checks::ldap_or_empty } = "", File;
        /// What it is: `standard` (OpenLDAP, 389 Directory Server, FreeIPA) or `active_directory` (Samba, too).
        kind: Choice { options: &["standard", "active_directory"] } = "standard", File;
        /// With `ldap:` whether the connection is encrypted by StartTLS, with a certificate for the host: `required`, or `off`, which sends the
        /// password for everybody to read.
        tls: Choice { options: &["required", "off"] } = "required", File;
        /// A file of certificates (PEM) of authorities that are trusted in addition to the system's. Empty: none.
        ca_file: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
        /// The name to log in with there, such as `cn=reader,dc=example,dc=org`. Empty: nobody logs in.
        bind_name: Text { form: "a name, or empty", check: checks::anything } = "", File;
        /// The file whose first line is the password. It is read when it is needed, and should be its owner's alone.
        password: Path = "people_source.password", File;
        /// The entry below which people and groups are, such as `dc=example,dc=org`.
        base: Text { form: "a name", check: checks::anything } = "", File;
        /// Which entries are read (RFC 4515). Empty: those of people and groups.
        filter: Text { form: "a filter, or empty", check: checks::filter_or_empty } = "", File;
        /// How often everything is read.
        interval: Duration { min: SECOND, max: DAY } = "5 min", File;
        /// Entries in all; with more, nothing is changed.
        entries: Integer { min: 1, max: 5_000_000 } = "200000", File;
        /// Whether people and groups who were made here are taken over where the source has their name or address.
        take_over: Boolean = "false", File;
        /// Whether the source checks the passwords of people who come from it and have none here.
        check_passwords: Boolean = "false", File;
        /// Nothing is changed if more than this part of the source's people, in percent, would be disabled at once.
        most_disabled_percent: Integer { min: 0, max: 100 } = "20", File;
    }

    /// Mail.
    mail as MailSettings {
        /// Mailboxes (`mail.box`) that memos are put into on their way. More let more people send at once
        /// without waiting for each other.
        boxes: Integer { min: 1, max: 10 } = "4", Restart, domino "MAIL.BOX count";
        /// A domain, such as `example.org`: makes this server a mail server by one line. Where nothing else is said it sets `mail.domains`, calls
        /// the server `mail.example.org` (`smtp.host_name`), listens for mail (`smtp.listen`, `submission.listen`, `submission.tls_listen`) and https
        /// (`https.listen`), and sends what is for others (`outbound.route`). `scrinium domain check` says what DNS needs. Empty: nothing.
        domain: Text { form: "a domain, or empty", check: mail_domain::domain_or_empty } = "", File;
        /// The parts after the @ in addresses of the people of this server.
        domains: TextList { form: "a host name", check: checks::host_name } = "localhost", Restart,
            domino "Domain";
        /// Who reads what is for `postmaster`, which every domain has, unless somebody in the directory has that name: a
        /// person or group.
        postmaster: Text { form: "a name of the directory", check: checks::name } = "admin", Restart;
        /// Memory for messages that are coming in, all together. Texts for which there is no room wait in temporary files.
        incoming_bytes: Bytes { min: MB, max: TB } = "64 MB", Restart;
        /// Temporary files for messages that are coming in, all together. Past that clients are to try again later (452).
        incoming_file_bytes: Bytes { min: MB, max: TB } = "4 GB", Restart;
        /// For how many days a message that is deleted or expunged can be had back (`scrinium mail undelete`). 0: it is gone at once. A database
        /// can say otherwise (`undelete_days`).
        undelete_days: Integer { min: 0, max: 3_650 } = "14", Running;
        /// How many bytes of deleted messages a database keeps for that, outside its quota; the oldest go first. A database can say otherwise
        /// (`undelete_bytes`).
        undelete_bytes: Bytes { min: 0, max: 1024 * TB } = "2 GB", Running;
        /// Messages in a person's folder for the trash are deleted after this many days; 0: never. A folder can say otherwise (`keep_days`).
        trash_days: Integer { min: 0, max: 36_500 } = "0", Running;
        /// Messages in a person's folder for junk are deleted after this many days; 0: never. A folder can say otherwise (`keep_days`).
        junk_days: Integer { min: 0, max: 36_500 } = "0", Running;
    }

    /// Messages of other servers, by SMTP (docs/operate/smtp.md).
    smtp as SmtpSettings {
        /// Where other servers bring messages for people of `mail.domains`, such as `0.0.0.0:25`. Empty: nowhere.
        listen: Addresses { at_least: 0 } = "", File, domino "SMTP TCP/IP port number";
        /// The name by which this server greets, and which stands in the trace of each message: best the one that the MX
        /// record and the certificate have. Empty: `server.name`.
        host_name: Text { form: "a host name, or empty", check: checks::host_name_or_empty } = "", Restart;
        /// Whether connections of `http.trusted_proxies` begin with a PROXY header, which names the client. Those that do not
        /// are closed then. Otherwise such a proxy is a client like any other.
        proxy_header: Boolean = "false", File;
        /// Whether connections may be encrypted after they begin (STARTTLS), with `http.tls_certificate`.
        starttls: Boolean = "true", File;
        /// The longest message that is taken.
        max_message_bytes: Bytes { min: 64 * KB, max: 2 * GB } = "50 MB", Restart;
        /// Recipients of one message. A client sends further ones in a second transaction (RFC 5321 §4.5.3.1.8).
        max_recipients: Integer { min: 100, max: 10_000 } = "1000", Restart;
        /// The longest that a client may take for its next command.
        command_timeout: Duration { min: SECOND, max: HOUR } = "5 min", Restart;
        /// Whether other servers' messages are checked by SPF, DKIM and DMARC. `apply`: what is found is written into the message,
        /// and where the author's domain asks for it, the message is refused. `report`: it is written down alone. `off`: nothing is
        /// checked.
        sender_checks: Choice { options: &["apply", "report", "off"] } = "apply", File;
        /// Networks of servers whose messages are not checked: they have been before, or are of people of this server.
        trusted_networks: TextList { form: "a network (10.0.0.0/8) or an address", check: checks::network } =
            "127.0.0.0/8, ::1, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7", File;
    }

    /// What examines messages of other servers, besides `smtp.sender_checks` (docs/operate/smtp.md). Servers of `smtp.trusted_networks` pass lists and
    /// greylisting.
    filters as FilterSettings {
        /// Programs that speak milter's protocol, such as `127.0.0.1:11332` or `unix:/run/filter.sock`, in the order in which they are asked.
        milters: TextList { form: "HOST:PORT or unix:PATH", check: checks::milter } = "", File;
        /// Where rspamd looks at messages over HTTP, such as `127.0.0.1:11333` or `unix:/run/rspamd.sock`, after the milters. Empty: it does not.
        rspamd: Text { form: "HOST:PORT or unix:PATH, or empty", check: checks::milter_or_empty } = "", File;
        /// Where rspamd learns from what people move into and out of Junk: its controller, such as `127.0.0.1:11334`. Empty: it does not.
        rspamd_controller: Text { form: "HOST:PORT or unix:PATH, or empty", check: checks::milter_or_empty } = "", File;
        /// The file whose first line is the password of rspamd's controller. Without the file it is asked without a password, which it allows to
        /// the networks of its `secure_ip`. It is read when it is needed, and should be its owner's alone.
        rspamd_password: Path = "rspamd.password", File;
        /// What becomes of a message that a filter says nothing of: `defer`, its sender is to try again later; `pass`, it goes on without that filter.
        on_failure: Choice { options: &["defer", "pass"] } = "defer", Restart;
        /// What becomes of a message that a filter wants put aside: `junk`, it comes into the folder Junk; `quarantine`, it is kept back until an
        /// administrator lets it go (`scrinium mail quarantine`).
        put_aside: Choice { options: &["junk", "quarantine"] } = "junk", Restart;
        /// Whether filters look at messages of people, too, which are handed in by submission.
        submission: Boolean = "false", Restart;
        /// The longest that a filter may take for one message.
        timeout: Duration { min: SECOND, max: Duration::from_secs(300) } = "30 s", Restart;
        /// Lists in DNS in which the addresses of other servers are looked for, such as `zen.spamhaus.org`, each with what it weighs to be there,
        /// such as `=2`; without, 1. Lists of good servers have a weight below zero.
        dns_lists: TextList { form: "a zone, or ZONE=WEIGHT", check: checks::dns_list } = "", Restart;
        /// Who weighs this much, of all lists together, is refused.
        dns_lists_refuse_from: Integer { min: 1, max: 1_000 } = "1", Restart;
        /// Whether unknown servers have to come again (greylisting).
        greylisting: Boolean = "false", Restart;
        /// The least time after which an unknown server may come again.
        greylisting_delay: Duration { min: SECOND, max: HOUR } = "5 min", Restart;
    }

    /// Reports of other servers about mail in the names of this server's domains (docs/operate/dmarc.md).
    dmarc as DmarcSettings {
        /// The database into which the address leads that DNS names for such reports (`rua`). Reports that come there are read, and views show
        /// them. Empty: none are read.
        reports_database: Text { form: "the name of a database, or empty", check: checks::database_or_empty } = "", File;
    }

    /// Messages that people hand in by their mail programs (docs/operate/smtp.md), once they have logged in. The certificate is
    /// `http.tls_certificate`; name, PROXY header and limits of a message are those of `smtp`.
    submission as SubmissionSettings {
        /// Where mail programs hand messages in and encrypt the connection after it begins (STARTTLS), such as `0.0.0.0:587`.
        /// Empty: nowhere.
        listen: Addresses { at_least: 0 } = "", File;
        /// Where they hand messages in over connections that are encrypted from the beginning, such as `0.0.0.0:465`: the better
        /// one of both (RFC 8314). Empty: nowhere.
        tls_listen: Addresses { at_least: 0 } = "", File;
        /// Whether programs of this machine, which come from a loopback address, may log in without TLS.
        loopback_without_tls: Boolean = "false", File;
        /// Messages that a person may hand in within 24 hours. More are refused for the time being (451). 0: as many as they like.
        max_messages_per_day: Integer { min: 0, max: 1_000_000_000 } = "5000", Restart;
        /// Recipients of the messages that a person hands in within 24 hours, each counted as often as a message names them. 0: as
        /// many as they like.
        max_recipients_per_day: Integer { min: 0, max: 1_000_000_000 } = "10000", Restart;
        /// The longest time for which a message may wait here before it is delivered or sent, where a mail program says so
        /// (FUTURERELEASE, RFC 4865). 0: none may.
        max_hold: Duration { min: Duration::ZERO, max: YEAR } = "30 d", Restart;
        /// Whether the address of the computer from which a person sends stays out of the trace of the message, which everybody
        /// reads who gets it.
        hide_clients: Boolean = "true", Restart;
    }

    /// Messages of a mail server in front of this one, by LMTP, which gets an answer for each recipient. The limits are
    /// those of `smtp`.
    lmtp as LmtpSettings {
        /// Where it listens, such as `127.0.0.1:24`. Everybody who reaches it can bring mail that nobody has examined. Empty:
        /// nowhere.
        listen: Addresses { at_least: 0 } = "", File;
        /// A socket of this machine's file system, such as `/run/scrinium/lmtp`, to which the server's user and group may connect.
        /// A relative path begins in the data folder. Empty: none.
        socket: Text { form: "a path, or empty", check: checks::file_or_empty } = "", File;
    }

    /// How mail programs find the ports of `mail.domains` by themselves, and what other servers are to know (docs/operate/mail-domain.md).
    /// It is answered at the HTTP ports, to everybody.
    discovery as DiscoverySettings {
        /// The name of this server that mail programs connect to: the one that the certificate has. Empty: `smtp.host_name`, or else
        /// `server.name`.
        host_name: Text { form: "a host name, or empty", check: checks::host_name_or_empty } = "", File;
        /// The host at which others reach the HTTP ports by https on port 443. Empty: as `discovery.host_name`.
        web_host: Text { form: "a host name, or empty", check: checks::host_name_or_empty } = "", File;
        /// Where people read mail by IMAP, as their programs reach it, such as `mail.example.org:993`. Port 143 means STARTTLS, any other
        /// one TLS from the first byte. Empty: the ports of `imap`, at `discovery.host_name`.
        imap: Addresses { at_least: 0 } = "", File;
        /// The same by POP3, such as `mail.example.org:995`; port 110 means STLS. Empty: the ports of `pop3`, at `discovery.host_name`.
        pop3: Addresses { at_least: 0 } = "", File;
        /// Where people hand in what they send, such as `mail.example.org:465`; port 587 means STARTTLS. Empty: the ports of
        /// `submission`, at `discovery.host_name`.
        submission: Addresses { at_least: 0 } = "", File;
        /// The hosts of the MX records of `mail.domains`. Empty: `smtp.host_name`, or else `server.name`.
        mail_hosts: TextList { form: "a host name", check: checks::host_name } = "", File;
        /// What other servers are asked for that send mail here (MTA-STS). `enforce`: no mail unless it goes encrypted to one of
        /// `discovery.mail_hosts` with a certificate for that host. `testing`: reports alone. `off`: nothing is asked.
        mta_sts: Choice { options: &["testing", "enforce", "off"] } = "testing", File;
        /// For how long other servers keep to what they were asked for.
        mta_sts_max_age: Duration { min: HOUR, max: YEAR } = "7 d", File;
    }

    /// Mail databases for mail programs, by IMAP (docs/operate/imap.md). The certificate is `http.tls_certificate`.
    imap as ImapSettings {
        /// Where it listens, such as `0.0.0.0:143`. Programs encrypt the connection after it begins (STARTTLS). Empty: nowhere.
        listen: Addresses { at_least: 0 } = "", File;
        /// Where it listens for connections that are encrypted from the beginning, such as `0.0.0.0:993`: the better one of both
        /// (RFC 8314). Empty: nowhere.
        tls_listen: Addresses { at_least: 0 } = "", File;
        /// Whether programs of this machine, which come from a loopback address, may log in without TLS.
        loopback_without_tls: Boolean = "false", File;
        /// The longest message that a program may put into a mailbox.
        max_message_bytes: Bytes { min: 64 * KB, max: 2 * GB } = "50 MB", Restart;
        /// What is not offered, for programs that do not get along with it: a capability, such as `COMPRESS=DEFLATE`, from everybody; with
        /// `person:ada` from Ada alone, with `client:outlook` from programs that have the word in their name.
        hidden_capabilities: TextList { form: "a capability, perhaps with person:NAME or client:WORD", check: checks::hidden_capability } = "", File;
        /// Whether people with the role `_open_mail` may open the mail of others in their name (SASL PLAIN with an authorization identity).
        /// Each time is put on record; without a log database nobody may.
        open_as_others: Boolean = "false", File;
        /// Whether connections of `http.trusted_proxies` begin with a PROXY header that names the client. Without it they are refused.
        proxy_header: Boolean = "false", File;
    }

    /// Inboxes for mail programs that fetch and delete, by POP3 (docs/operate/pop3.md). The certificate is `http.tls_certificate`.
    pop3 as Pop3Settings {
        /// Where it listens, such as `0.0.0.0:110`. Programs encrypt the connection after it begins (STLS). Empty: nowhere.
        listen: Addresses { at_least: 0 } = "", File;
        /// Where it listens for connections that are encrypted from the beginning, such as `0.0.0.0:995`: the better one of both
        /// (RFC 8314). Empty: nowhere.
        tls_listen: Addresses { at_least: 0 } = "", File;
        /// Whether programs of this machine, which come from a loopback address, may log in without TLS.
        loopback_without_tls: Boolean = "false", File;
        /// Whether connections of `http.trusted_proxies` begin with a PROXY header that names the client. Without it they are refused.
        proxy_header: Boolean = "false", File;
    }

    /// Sieve scripts of people, which their mail programs set by ManageSieve (docs/operate/sieve.md). The certificate is that of all ports.
    managesieve as ManageSieveSettings {
        /// Where it listens, such as `0.0.0.0:4190`. Programs encrypt the connection after it begins (STARTTLS), and log in only then.
        /// Empty: nowhere.
        listen: Addresses { at_least: 0 } = "", File;
    }

    /// The directory for address books and other programs, by LDAP, only to be read (docs/operate/ldap.md). The certificate is
    /// `http.tls_certificate`.
    ldap as LdapSettings {
        /// Where it listens, such as `0.0.0.0:389`. Clients encrypt the connection after it begins (StartTLS). Empty: nowhere.
        listen: Addresses { at_least: 0 } = "", File;
        /// Where it listens for connections that are encrypted from the beginning, such as `0.0.0.0:636`. Empty: nowhere.
        tls_listen: Addresses { at_least: 0 } = "", File;
        /// The name of the entry below which people and groups are, such as `dc=example,dc=org`. Empty: that of the first of
        /// `mail.domains`.
        base: Text { form: "a distinguished name, or empty", check: checks::distinguished_name_or_empty } = "", File;
        /// Entries of one answer, at most. Who asks for pages gets more answers.
        max_entries: Integer { min: 1, max: 100_000 } = "1000", Restart;
        /// Whether programs of this machine, which come from a loopback address, may log in without TLS.
        loopback_without_tls: Boolean = "false", File;
    }

    /// Mail to other servers, by SMTP (docs/operate/mail-out.md).
    outbound as OutboundSettings {
        /// Which way mail for people elsewhere takes. `off`: none; its senders hear that the recipients are unknown. `mx`: to the hosts
        /// that DNS names for each domain. `relay`: to `outbound.relay`.
        route: Choice { options: &["off", "mx", "relay"] } = "off", File;
        /// The server to which mail is handed, whatever its domain, such as `smarthost.example:587`.
        relay: Addresses { at_least: 0 } = "", File,
            domino "Relay host for messages leaving the local internet domain";
        /// The name to log in with there. Empty: nobody logs in. The connection must then be encrypted, with a certificate for that host.
        relay_user: Text { form: "a name, or empty", check: checks::anything } = "", File;
        /// The file whose first line is the password. It is read when it is needed, and should be its owner's alone.
        relay_password: Path = "relay.password", File;
        /// Whether the connection to the relay host is encrypted from its first byte, as on port 465.
        relay_implicit_tls: Boolean = "false", File;
        /// Whether connections are encrypted. `opportunistic`: where the other server offers it, with any certificate. `required`: always,
        /// with any certificate. `verified`: always, with a certificate for the host. `off`: never.
        tls: Choice { options: &["opportunistic", "required", "verified", "off"] } = "opportunistic", File;
        /// Whether the policies of other domains are kept to (MTA-STS): which hosts their mail may go to, encrypted, with a certificate for the host.
        /// They are fetched by https, and kept for as long as they say.
        mta_sts: Boolean = "true", File;
        /// A file of certificates (PEM) of authorities that are trusted in addition to the system's. Empty: none.
        ca_file: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
        /// A file of rules that lead mail for some addresses and domains another way. Empty: none.
        transports: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
        /// A file of rules that make one recipient's address another one before the way is looked for. Empty: none.
        rewrites: Text { form: "a file, or empty", check: checks::file_or_empty } = "", File;
        /// The folder of the passwords that transport rules name: a file each.
        secrets_dir: Path = "secrets", File;
        /// Whether messages are signed in the name of their author's domain (DKIM), where it is one of `mail.domains`. The server makes
        /// keys, and signs once DNS has them: `show dkim` on the console says what to publish.
        sign: Boolean = "true", File;
        /// The folder of the keys that sign.
        keys_dir: Path = "dkim", File;
        /// The port of other servers.
        port: Integer { min: 1, max: 65_535 } = "25", File;
        /// Name servers, such as `127.0.0.1:53`, also for the checks of senders. Empty: those of `/etc/resolv.conf`.
        resolvers: Addresses { at_least: 0 } = "", File;
        /// Which addresses of a host are tried: both kinds, beginning with one, or one kind alone.
        ip: Choice { options: &["v6_first", "v4_first", "v6", "v4"] } = "v6_first", File;
        /// Whether DNS may lead mail to addresses of private networks and of this machine. A relay host and transport rules may in any
        /// case.
        private_networks: Boolean = "false", File;
        /// Messages that are sent at once.
        attempts: Integer { min: 1, max: 10_000 } = "500", Restart;
        /// Of these, messages to one destination, at most. It begins with five, and learns how many the other server bears.
        destination_connections: Integer { min: 1, max: 1000 } = "20", Restart;
        /// The longest that another server may take to answer a command; twice as long for the answer to a whole message.
        command_timeout: Duration { min: SECOND, max: HOUR } = "5 min", Restart;
        /// The longest that one attempt may take, however slowly the other server answers; a minute more for each megabyte.
        session_timeout: Duration { min: SECOND, max: DAY } = "30 min", Restart;
    }

    /// The queue of mail to other servers: when what is tried, and when it is given up.
    queue as QueueSettings {
        /// What could not be sent is tried again after this, then after twice as long, and so on.
        first_retry: Duration { min: SECOND, max: DAY } = "5 min", Restart, domino "InitialRetryInterval";
        /// The longest time between two attempts.
        longest_retry: Duration { min: SECOND, max: DAY } = "4 h", Restart;
        /// A message is given up after this time, and its sender hears of it.
        lifetime: Duration { min: Duration::from_secs(60), max: YEAR } = "5 d", Restart;
        /// The same for notices, which have no sender.
        report_lifetime: Duration { min: Duration::from_secs(60), max: YEAR } = "2 d", Restart;
        /// The sender of a message that is still tried hears of the delay after this time, once. 0: never.
        delay_notice: Duration { min: Duration::ZERO, max: YEAR } = "4 h", Restart;
        /// Notices that could not be sent, and mail without a sender, are kept for this time (`show queue`: dead).
        keep_dead_for: Duration { min: HOUR, max: CENTURY } = "30 d", Restart;
        /// A message that has gone through more servers goes round in a circle, and is returned.
        max_hops: Integer { min: 1, max: 1000 } = "100", Restart, domino "Maximum hop count";
        /// Senders, such as mailing lists, of whose messages each recipient gets one with a sender of its own, so that a bounce says whom it
        /// is about: `list+bob=example.net@acme.example`.
        verp_senders: TextList { form: "an address", check: checks::anything } = "", Restart;
    }

    /// The database in which the server keeps a record of what happens (docs/operate/log-database.md).
    log_database as LogDatabaseSettings {
        /// Its name. Administrators alone may read it. Empty: no record is kept.
        name: Text { form: "the name of a database, or empty", check: checks::log_database_or_empty } = "log",
            File;
        /// Documents are removed after this time, and leave no tombstones.
        keep_for: Duration { min: HOUR, max: CENTURY } = "14 d", Running;
        /// What became of memos and of outgoing mail (`scrinium mail trace`) is removed after this time.
        keep_mail_for: Duration { min: HOUR, max: CENTURY } = "31 d", Running;
        /// The statistics of each full hour are removed after this time.
        keep_hourly_for: Duration { min: HOUR, max: CENTURY } = "365 d", Running;
        /// The audit, which tells who changed what may be done here, is removed after this time.
        keep_audit_for: Duration { min: HOUR, max: CENTURY } = "365 d", File;
        /// An operation that takes this long or longer gets a document with its database and person. 0: none does.
        slow_after: Duration { min: Duration::ZERO, max: HOUR } = "1 s", Running;
        /// Documents of each kind (events, mail, task runs, slow operations, log-ins, audit) in a minute, at most. What is left out is
        /// counted, and told by an event.
        per_minute: Integer { min: 1, max: 1_000_000 } = "600", Running;
    }

    /// What the server tells while it runs, on standard error.
    tracing as TracingSettings {
        /// How much it tells: error, warn, info, debug or trace; also by part, such as
        /// `info,scrinium_store=debug`.
        level: Text { form: "a level, or a list of part=level", check: checks::tracing_level } = "info",
            Running;
        /// `text` for people, `json` for programs that gather logs.
        format: Choice { options: &["text", "json"] } = "text", Restart;
        /// Warnings and errors from one place in the program, in ten seconds; more of the same are left
        /// out and counted (`Server.Tracing.Suppressed`). 0: all are logged.
        repeats: Integer { min: 0, max: 1_000_000 } = "20", Restart;
    }
}

/// Every key, in the order in which they are shown.
pub fn keys() -> impl Iterator<Item = &'static Key> + Clone {
    SECTIONS.iter().flat_map(|section| section.keys)
}

/// The key of this name.
#[must_use]
pub fn key(name: &str) -> Option<&'static Key> {
    keys().find(|key| key.name == name)
}

impl Default for Settings {
    fn default() -> Self {
        Self::collect(|name| key(name).and_then(|key| key.default_value().ok()))
    }
}

impl Settings {
    /// A path of the configuration, which begins in the data folder.
    #[must_use]
    pub fn in_data_dir(&self, path: &Path) -> PathBuf {
        self.server.data_dir.join(path)
    }

    /// What is wrong with settings that are each right, with the key that is best changed.
    pub(super) fn contradictions(&self) -> Vec<(String, String)> {
        let mut found = self.contradictions_of_volumes();
        let mut at_least = |small: &'static str, has: u64, large: &str, needs: u64| {
            if has < needs {
                let needs = super::print_bytes(needs);
                found.push((small.to_owned(), format!("it must be at least {needs}, as {large}")));
            }
        };
        if self.log.max_size > 0 {
            let needs = self.log.extent_bytes.saturating_mul(3);
            at_least("log.max_size", self.log.max_size, "three times log.extent_bytes", needs);
        }
        let http = &self.http;
        at_least(
            "http.max_request_bytes",
            http.max_request_bytes,
            "document.max_bytes",
            self.document.max_bytes,
        );
        at_least(
            "http.body_budget_bytes",
            http.body_budget_bytes,
            "http.max_request_bytes",
            http.max_request_bytes,
        );
        found
    }

    fn contradictions_of_volumes(&self) -> Vec<(String, String)> {
        const MOST_PERCENT: usize = 80;
        let mut found = Vec::new();
        let store = self.server.data_dir.join("store");
        let mut dirs = vec![(store, "the store in the data folder".to_owned())];
        let mut percent = 0;
        for (name, volume) in &self.volumes {
            let key = format!("volume.{name}.dir");
            let dir = self.in_data_dir(Path::new(&volume.dir));
            if volume.dir.is_empty() {
                found.push((key, "name the folder of the volume".to_owned()));
            } else if let Some((_, other)) =
                dirs.iter().find(|(other, _)| dir.starts_with(other) || other.starts_with(&dir))
            {
                found.push((key, format!("{} is, holds or lies in that of {other}", dir.display())));
            }
            dirs.push((dir, format!("the volume {name}")));
            percent += volume.memory_percent;
            if percent > MOST_PERCENT {
                let key = format!("volume.{name}.memory_percent");
                found.push((
                    key,
                    format!("all volumes together may have at most {MOST_PERCENT} %, and have {percent}"),
                ));
                break;
            }
        }
        found
    }

    /// Whether the HTTP port can be reached from other machines.
    #[must_use]
    pub fn listens_beyond_itself(&self) -> bool {
        let local = |host: &str| host == "localhost" || host == "::1" || host.starts_with("127.");
        self.http.listen.iter().any(|address| !local(&address.host))
    }
}
