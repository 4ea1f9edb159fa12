//! Event logs, with topics and data encoded as in the Ethereum ABI.

use super::random::Random;
use super::transaction::Transfer;
use super::world::World;
use super::{Cell, Row};

/// Signature hashes of the events of a token contract: `Transfer(address,address,uint256)` and
/// `TransferSingle(address,address,address,uint256,uint256)`.
const TRANSFERRED: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const TRANSFERRED_OF_MANY: &str = "0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62";
/// Events of other contracts: `Approval(address,address,uint256)`, `Deposit(address,uint256)`,
/// `Withdrawal(address,uint256)` and `Sync(uint112,uint112)`.
const APPROVAL: &str = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925";
const DEPOSIT: &str = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";
const WITHDRAWAL: &str = "0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65";
const SYNC: &str = "0x1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1";

#[derive(Debug)]
pub struct Log {
    address: String,
    topics: Vec<String>,
    data: String,
    index: i64,
}

impl Log {
    /// The event that the token's contract logs for a transfer.
    pub fn of(transfer: &Transfer<'_>, sender: &str, index: i64) -> Self {
        let from = padded(&transfer.from);
        let to = padded(&transfer.to);
        let amount = format!("{:064x}", transfer.units);
        let (topics, data) = match transfer.token.protocol {
            "ERC721" => (vec![TRANSFERRED.into(), from, to, format!("0x{}", word(&transfer.id))], "0x".into()),
            "ERC1155" => {
                let topics = vec![TRANSFERRED_OF_MANY.into(), padded(sender), from, to];
                (topics, format!("0x{}{amount}", word(&transfer.id)))
            }
            _ => (vec![TRANSFERRED.into(), from, to], format!("0x{amount}")),
        };
        Self { address: transfer.token.contract.clone(), topics, data, index }
    }

    /// Any event of a contract that is not a transfer.
    pub fn any(world: &World, random: &mut Random, index: i64) -> Self {
        let address = world.address(world.contract(random)).to_owned();
        let mut party = || padded(world.address(world.person(random, 1_000)));
        let owner = party();
        let spender = party();
        let (topics, words) = match random.index(5) {
            0 => (vec![APPROVAL.into(), owner, spender], 1),
            1 => (vec![DEPOSIT.into(), owner], 1),
            2 => (vec![WITHDRAWAL.into(), owner], 1),
            3 => (vec![SYNC.into()], 2),
            // An anonymous event.
            _ => (Vec::new(), 0),
        };
        let data = (0..words).map(|_| format!("{:064x}", random.below(u64::MAX))).collect::<String>();
        Self { address, topics, data: format!("0x{data}"), index }
    }
}

/// An address as a topic; the first one of several.
fn padded(address: &str) -> String {
    let address = address.split(',').next().unwrap_or_default();
    format!("0x{:0>64}", address.trim_start_matches("0x"))
}

/// Decimal digits as a word of 32 bytes, in hex.
fn word(digits: &str) -> String {
    let mut bytes = [0_u8; 32];
    for digit in digits.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in bytes.iter_mut().rev() {
            carry += u16::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Row for Log {
    fn cell(&self, column: &str) -> Cell<'_> {
        match column {
            "address" => Cell::Text(&self.address),
            "topics" => Cell::Texts(&self.topics),
            "data" => Cell::Text(&self.data),
            "log_index" => Cell::Integer(self.index),
            _ => Cell::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn integer_is_encoded_as_an_abi_word() {
        assert_eq!(word("0"), "0".repeat(64));
        assert_eq!(word("4660"), format!("{:064x}", 4660));
        let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(word(largest), "f".repeat(64));
    }
}
