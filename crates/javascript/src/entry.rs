//! Where a process that is to run functions begins.
//!
//! Such a process is the program itself that needs one, started once more: the server, a test, a benchmark. What runs functions
//! must be of the same version as what asks it, and so it is, however the program was installed, replaced or moved since it
//! was started. For that no program has to do anything: before its `main` this looks whether it is such a process.

use std::ffi::OsString;

/// The first argument of such a process; the second is the memory of its engine, in bytes.
pub(crate) const ARGUMENT: &str = "--run-javascript";

/// Called by the loader when the program's own initialisation is done, and before `main`.
#[used]
#[allow(
    unsafe_code,
    reason = "the loader calls what stands in this section, once, on the only thread there is"
)]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static ENTRY: extern "C" fn() = enter;

extern "C" fn enter() {
    if let Some(memory_bytes) = asked() {
        // Whatever happens in there, `main` is not for this process.
        let code = std::panic::catch_unwind(|| crate::serve::serve(memory_bytes)).unwrap_or(1);
        std::process::exit(code);
    }
}

/// Whether this is a process that runs functions, with how much memory.
fn asked() -> Option<usize> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let memory: OsString = arguments.next()?;
    memory.to_str()?.parse().ok()
}
