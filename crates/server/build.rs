//! Where the binary looks for RocksDB's library: next to itself, and in `../lib/scrinium`, where packages put it. So a copy
//! of the two runs anywhere. Where the library is one that is linked as a whole, this changes nothing.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        // After what .cargo/config.toml adds for programs that stay here; what is packed is built without that.
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,$ORIGIN:$ORIGIN/../lib/scrinium");
    }
}
