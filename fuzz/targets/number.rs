#![no_main]

use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "other targets use the rest")]
#[path = "../checks.rs"]
mod checks;

fuzz_target!(|input: &[u8]| {
    checks::number(input);
});
