//! What a process gives up before it looks at what strangers sent: files, network, other processes.
//!
//! Such a process is the program itself, started once more, which never comes to its `main`. It reads requests and writes
//! answers. Limits of resources stand in any case; on Linux landlock and seccomp stand as far as the kernel has them.
//!
//! *Invariant*: what was given up cannot be had back; a process that ends harms nobody but its own answer.

mod start;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub use start::{RunningProcess, is_started_as, start};

/// Which of the kernel's walls stand around a process, as bits of the byte that it tells.
pub const NO_FILES: u8 = 1;
/// As [`NO_FILES`]: no calls to the kernel but a few.
pub const NO_CALLS: u8 = 2;

/// Address space besides what the program has when it starts and the memory that it is given: requests, answers, and what
/// the allocator keeps.
const ROOM_BYTES: u64 = 64 << 20;

/// Gives up everything but reading requests and writing answers, with so much memory; `prepare` does before that what needs a
/// file once. The process is called `name` from then on. Returns which walls stand; limits do in any case.
///
/// # Errors
/// The system refuses a limit.
pub fn confine(
    memory_bytes: usize,
    name: &'static std::ffi::CStr,
    prepare: impl FnOnce(),
) -> std::io::Result<u8> {
    // Its place in the line when the system has no memory left.
    drop(std::fs::write("/proc/self/oom_score_adj", "1000"));
    prepare();
    close_others();
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Nproc, 0)?;
    limit_memory(memory_bytes)?;
    let mut walls = 0;
    #[cfg(target_os = "linux")]
    {
        walls |= linux::confine(name);
    }
    // Last: what builds the walls needs a file for a moment.
    limit(Resource::Nofile, 0)?;
    walls |= linux_calls();
    Ok(walls)
}

/// Closes what the server had open and did not keep from its children.
#[allow(unsafe_code, reason = "nothing in this process owns a descriptor yet, but for the standard ones")]
fn close_others() {
    #[cfg(target_os = "linux")]
    // SAFETY: plain numbers; no descriptor from 3 on has an owner in this process.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
    }
}

fn limit(resource: Resource, value: u64) -> rustix::io::Result<()> {
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
}

/// Its memory, besides what the program is itself. A request and its answer are at most as large as that.
fn limit_memory(memory_bytes: usize) -> rustix::io::Result<()> {
    let page_bytes = rustix::param::page_size() as u64;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    // Where the system does not tell how large the program is, an engine's own limit stands alone.
    let Some(pages) = pages else { return Ok(()) };
    let memory = (memory_bytes as u64).saturating_mul(2).saturating_add(ROOM_BYTES);
    limit(Resource::As, pages.saturating_mul(page_bytes).saturating_add(memory))
}

/// Ends this process when it has used so much more processor time, also if nobody is there any more to end it.
pub fn allow_seconds(seconds: u64) {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
    let soft = u64::try_from(used).unwrap_or_default().saturating_add(seconds);
    let maximum = getrlimit(Resource::Cpu).maximum;
    // Not before: a limit that is refused leaves the server's own watch.
    let _ = setrlimit(Resource::Cpu, Rlimit { current: Some(soft), maximum });
}

#[cfg(target_os = "linux")]
fn linux_calls() -> u8 {
    if linux::forbid_calls() { NO_CALLS } else { 0 }
}

#[cfg(not(target_os = "linux"))]
const fn linux_calls() -> u8 {
    0
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
    };
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    use super::NO_FILES;

    /// What engines, parsers, allocators and the loop around them call. Everything else is refused.
    const CALLS: &[i64] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_sched_yield,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    /// Closes the files, ports and other processes of the machine to this one, as far as the kernel knows how.
    pub(super) fn confine(name: &'static std::ffi::CStr) -> u8 {
        let _ = rustix::thread::set_no_new_privs(true);
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = rustix::thread::set_name(name);
        if forbid_files().is_ok_and(|status| status != RulesetStatus::NotEnforced) { NO_FILES } else { 0 }
    }

    fn forbid_files() -> Result<RulesetStatus, landlock::RulesetError> {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(ABI::V6))?
            .handle_access(AccessNet::from_all(ABI::V6))?
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .restrict_self()?;
        Ok(status.ruleset)
    }

    /// Makes the kernel refuse all calls but a few.
    pub(super) fn forbid_calls() -> bool {
        filter().is_some_and(|filter| seccompiler::apply_filter(&filter).is_ok())
    }

    fn filter() -> Option<BpfProgram> {
        let equals = |argument, value| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value).ok()
        };
        let without = |argument, bits: i32| {
            let mask = u64::try_from(bits).ok()?;
            SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(mask), 0).ok()
        };
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            CALLS.iter().map(|call| (*call, Vec::new())).collect();
        // Memory, but none that can be executed.
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            rules.insert(call, vec![SeccompRule::new(vec![without(2, libc::PROT_EXEC)?]).ok()?]);
        }
        // Its own limit of processor time, and signals to itself, by which it ends where memory is damaged.
        let own = vec![equals(0, 0)?, equals(1, u64::from(libc::RLIMIT_CPU))?];
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(own).ok()?]);
        let process = u64::from(std::process::id());
        rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![equals(0, process)?]).ok()?]);
        let refused = SeccompAction::Errno(u32::try_from(libc::EPERM).ok()?);
        let machine = TargetArch::try_from(std::env::consts::ARCH).ok()?;
        SeccompFilter::new(rules, refused, SeccompAction::Allow, machine).ok()?.try_into().ok()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::Command;

    use super::*;

    const CONFINED: &str = "SCRINIUM_CONFINED";

    /// In a process of its own.
    #[test]
    fn what_is_given_up_is_gone() {
        if std::env::var_os(CONFINED).is_none() {
            let own = std::env::current_exe().unwrap();
            let test = "tests::what_is_given_up_is_gone";
            let mut confined = Command::new(own);
            let status = confined
                .args([test, "--exact"])
                .env(CONFINED, "1")
                .stdout(std::process::Stdio::null())
                .status();
            assert!(status.unwrap().success());
            return;
        }
        let walls = confine(64 << 20, c"confined", || ()).unwrap();
        assert!(std::fs::File::open("/etc/passwd").is_err() && std::fs::read_dir("/").is_err());
        assert!(
            std::fs::write("/tmp/confined", "x").is_err()
                && std::fs::metadata("/etc/passwd").is_err() == (walls & NO_CALLS != 0)
        );
        assert!(TcpListener::bind("127.0.0.1:0").is_err() && TcpStream::connect("127.0.0.1:80").is_err());
        assert!(UdpSocket::bind("127.0.0.1:0").is_err() && std::os::unix::net::UnixStream::pair().is_err());
        assert!(Command::new("/bin/true").status().is_err());
        assert!(std::thread::Builder::new().spawn(|| ()).is_err());
        let first = rustix::process::Pid::from_raw(1).unwrap();
        assert!(rustix::process::test_kill_process(first).is_err());
        assert!(
            rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum: Some(100) })
                .is_err()
        );
        assert!(Vec::<u8>::new().try_reserve_exact(1 << 30).is_err(), "memory is bounded");
    }
}
