//! Makes the library that tests put before the C library, from `src/interpose.c`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=src/interpose.c");
    let Some(folder) = std::env::var_os("OUT_DIR") else {
        eprintln!("Cargo names no OUT_DIR");
        return ExitCode::FAILURE;
    };
    let library = Path::new(&folder).join("libscrinium_fault.so");
    let compiler = cc::Build::new().pic(true).warnings(true).extra_warnings(true).get_compiler();
    let mut command = compiler.to_command();
    command
        .args(["-shared", "-O1", "-Werror", "src/interpose.c", "-o"])
        .arg(library)
        .args(["-ldl", "-lpthread"]);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        outcome => {
            eprintln!("the compiler of C did not make the library: {outcome:?}");
            ExitCode::FAILURE
        }
    }
}
