//! Where a process that is to read a file begins: in the program itself, before its `main`, as with functions in JavaScript.

use std::io::{Read, Write};

use scrinium_confinement::{allow_seconds, confine};

use crate::kind::Kind;
use crate::process::{READY, REQUEST_BYTES_MAX};
use crate::{office, text};

/// The first argument of such a process. Behind it: memory in bytes, seconds, bytes of text, kind.
pub(crate) const ARGUMENT: &str = "--extract-text";

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
    if let Some(asked) = Asked::read() {
        // Whatever happens in there, `main` is not for this process.
        let code = std::panic::catch_unwind(|| serve(&asked)).unwrap_or(1);
        std::process::exit(code);
    }
}

/// What the arguments say.
struct Asked {
    memory_bytes: usize,
    seconds: u64,
    text_bytes: usize,
    kind: Kind,
}

impl Asked {
    fn read() -> Option<Self> {
        let mut arguments = std::env::args_os().skip(1);
        if arguments.next()? != ARGUMENT {
            return None;
        }
        let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
        let memory_bytes = usize::try_from(number()?).ok()?;
        let seconds = number()?;
        let text_bytes = usize::try_from(number()?).ok()?;
        let kind = if number()? == 0 { Kind::Pdf } else { Kind::Office };
        Some(Self { memory_bytes, seconds, text_bytes, kind })
    }
}

/// Reads the file, and writes its words. Returns how the process ends.
fn serve(asked: &Asked) -> i32 {
    // What a library says on panicking is for nobody.
    std::panic::set_hook(Box::new(|_| ()));
    if confine(asked.memory_bytes, c"extraction", || ()).is_err() {
        return 1;
    }
    allow_seconds(asked.seconds);
    let mut file = Vec::new();
    let read = std::io::stdin().lock().take(REQUEST_BYTES_MAX).read_to_end(&mut file);
    if read.is_err() {
        return 1;
    }
    let words = match asked.kind {
        Kind::Office => office::text(&file, asked.text_bytes),
        _ => pdf_extract::extract_text_from_mem(&file).ok(),
    };
    let Some(mut words) = words else { return 2 };
    text::cut(&mut words, asked.text_bytes);
    let mut output = std::io::stdout().lock();
    let written = output.write_all(READY).and_then(|()| output.write_all(words.as_bytes()));
    i32::from(written.and_then(|()| output.flush()).is_err())
}
