#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../event_check.rs"]
mod event_check;

fuzz_target!(|input: &[u8]| {
    event_check::event(input);
});
