//! The events of the token standards.

use super::Event;
use crate::message::Message;

/// Names and declarations. `ERC20.Transfer` and `ERC721.Transfer` have one topic and differ in what is indexed.
pub const KNOWN: [(&str, &str); 9] = [
    ("ERC20.Transfer", "Transfer(address indexed from, address indexed to, uint256 value)"),
    ("ERC20.Approval", "Approval(address indexed owner, address indexed spender, uint256 value)"),
    ("ERC721.Transfer", "Transfer(address indexed from, address indexed to, uint256 indexed tokenId)"),
    ("ERC721.Approval", "Approval(address indexed owner, address indexed approved, uint256 indexed tokenId)"),
    ("ERC721.ApprovalForAll", "ApprovalForAll(address indexed owner, address indexed operator, bool approved)"),
    (
        "ERC1155.TransferSingle",
        "TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)",
    ),
    (
        "ERC1155.TransferBatch",
        "TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, \
         uint256[] values)",
    ),
    ("ERC1155.ApprovalForAll", "ApprovalForAll(address indexed account, address indexed operator, bool approved)"),
    ("ERC1155.URI", "URI(string value, uint256 indexed id)"),
];

/// Returns the event of a standard by its name, such as `ERC20.Transfer`.
pub fn named(name: &str) -> Result<Event, Message> {
    let Some((_, declaration)) = KNOWN.iter().find(|(known, _)| *known == name) else {
        let names = KNOWN.map(|(known, _)| known).join(", ");
        return Err(Message::new(format!("must be one of {names}; got {name:?}")));
    };
    Event::parse(declaration)
}
