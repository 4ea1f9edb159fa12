#![no_main]

use std::sync::LazyLock;

use chainframe::decode::Decoder;
use chainframe::interface::{Deployment, ENDPOINTS};
use libfuzzer_sys::fuzz_target;

#[expect(dead_code, reason = "other targets use the rest")]
#[path = "../checks.rs"]
mod checks;

static DECODERS: LazyLock<Vec<Decoder>> =
    LazyLock::new(|| ENDPOINTS.iter().map(|endpoint| Decoder::new(endpoint, &Deployment::default())).collect());

fuzz_target!(|body: &[u8]| {
    for decoder in DECODERS.iter() {
        checks::response(decoder, body);
    }
});
