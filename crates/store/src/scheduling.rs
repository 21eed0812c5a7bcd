//! Who comes first: threads that answer somebody, and threads that nobody waits for.
//!
//! A low priority alone is not enough: it bounds what a thread gets of a processor, but the scheduler lets it finish its
//! slice of some milliseconds although one that answers has woken, and most answers take a tenth of that. Since Linux
//! 6.12 anyone who asks for shorter slices interrupts who has longer ones; before it, the priority alone decides.

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// About a tenth of a processor that is wanted by others too.
const NICENESS: i32 = 10;

/// What the system gives those who may wait longest.
pub(crate) const LAST: i32 = 19;

/// Shorter than what the kernel gives, however few processors there are (0.7 ms), and longer than most answers take.
const SHORT_SLICE_NS: u64 = 500_000;

/// What the kernel gives who asks for nothing. Longer ones would be owed to the one who has waited for them, at once.
const USUAL_SLICE: u64 = 0;

/// From now on the calling thread, and the threads that it begins, may interrupt those that come after others.
pub fn come_before_others() {
    ask_for_slices(getpriority_process(Some(gettid())).unwrap_or(0), SHORT_SLICE_NS);
}

/// From now on the calling thread, and the threads that it begins, come after all others. Where the system does not allow
/// it, they are as urgent as before. Not for a thread that holds what others need.
pub fn come_after_others() {
    come_after(NICENESS);
}

/// As [`come_after_others`], with a niceness of 1 to 19 (setpriority(2)).
pub(crate) fn come_after(niceness: i32) {
    let thread = Some(gettid());
    // It may come after others already, and the system lets nobody take that back.
    let niceness = getpriority_process(thread).unwrap_or(0).max(niceness);
    let _ = setpriority_process(thread, niceness);
    ask_for_slices(niceness, USUAL_SLICE);
}

/// sched_setattr(2): slices of its own for this thread. The policy stays what the one who started the server chose; those for
/// real time know no slices, and refuse.
#[allow(unsafe_code, reason = "no crate has this call of the system in a safe form")]
fn ask_for_slices(niceness: i32, slice_ns: u64) {
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0),
        sched_policy: 0,
        sched_flags: u64::try_from(libc::SCHED_FLAG_KEEP_POLICY).unwrap_or(0),
        sched_nice: niceness,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (calling_thread, no_flags) = (0, 0);
    // SAFETY: the system reads `size` bytes of the attributes, which outlive the call, and keeps no pointer to them.
    let _refused =
        unsafe { libc::syscall(libc::SYS_sched_setattr, calling_thread, &raw const attributes, no_flags) };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn niceness() -> i32 {
        getpriority_process(Some(gettid())).unwrap()
    }

    #[test]
    fn who_comes_after_others_does_so_with_the_threads_it_begins_and_alone() {
        let before = niceness();
        let (own, begun) = std::thread::scope(|scope| {
            let background = scope.spawn(|| {
                come_after_others();
                (niceness(), std::thread::spawn(niceness).join().unwrap())
            });
            background.join().unwrap()
        });
        assert_eq!((own, begun), (before.max(NICENESS), before.max(NICENESS)));
        assert_eq!(niceness(), before);
    }

    /// The slice of this thread, if the kernel tells it.
    fn slice_ns() -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("se.slice"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    fn kernel() -> (u32, u32) {
        let name = rustix::system::uname();
        let mut parts = name.release().to_str().unwrap().split('.').map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }

    #[test]
    fn who_comes_first_asks_for_shorter_slices_where_the_kernel_knows_them() {
        let Some(usual) = slice_ns().filter(|_| kernel() >= (6, 12)) else { return };
        let slices = || {
            come_before_others();
            let first = std::thread::spawn(slice_ns).join().unwrap();
            come_after_others();
            (first, slice_ns())
        };
        let slices = std::thread::scope(|scope| scope.spawn(slices).join().unwrap());
        assert_eq!(slices, (Some(SHORT_SLICE_NS), Some(usual)));
        assert!(SHORT_SLICE_NS < usual);
    }

    /// The scheduler's policy for this thread, by its number in sched.h.
    fn policy() -> Option<u32> {
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.starts_with("policy"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    #[test]
    #[ignore = "a child process of the other test"]
    fn child_that_was_begun_as_a_batch() {
        let before = policy().unwrap();
        assert_eq!(before, 3, "SCHED_BATCH");
        come_before_others();
        assert_eq!(policy(), Some(before));
        come_after_others();
        assert_eq!(policy(), Some(before));
    }

    /// Asking for slices had made a thread of every other policy a usual one.
    #[test]
    fn a_policy_that_the_server_was_begun_with_stays() {
        if policy().is_none() {
            return scrinium_fault::skip(
                "this system does not tell a thread's policy (/proc/thread-self/sched)",
            );
        }
        let child = ["--ignored", "--exact", "scheduling::tests::child_that_was_begun_as_a_batch"];
        let test = std::env::current_exe().unwrap();
        // Of util-linux; a system without it has nobody who begins a server so.
        let Ok(ended) =
            std::process::Command::new("chrt").args(["--batch", "0"]).arg(test).args(child).output()
        else {
            return scrinium_fault::skip("there is no program `chrt`: install util-linux");
        };
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && told.contains("1 passed"), "{told}");
    }
}
