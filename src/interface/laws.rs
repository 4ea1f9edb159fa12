//! Laws that the records of a list obey, whatever the API returns: a record that is missing breaks them. Each names what it
//! assumes of the chain.

/// One law of the lists of one endpoint.
#[derive(Debug)]
pub struct Law {
    pub name: &'static str,
    pub endpoint: &'static str,
    /// The law is not checked where one of these arguments is given, if a value is named: with that value.
    pub without: &'static [(&'static str, Option<&'static str>)],
    pub rule: Rule,
    /// Property of the chain without which the law need not hold.
    pub assumption: &'static str,
}

impl Law {
    /// Columns without which the law cannot be checked.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        let columns = match &self.rule {
            Rule::Sequence(Sequence { number, owner, state, .. }) => {
                vec![Some(*number), self.group(), owner.map(|(column, _)| column), *state]
            }
            Rule::Custody(moves) | Rule::Balances(moves) => {
                let Moves { from, to, amount, id, height, state, protocol } = moves;
                [from, to, amount, id, height, state, protocol].map(|name| Some(*name)).to_vec()
            }
        };
        columns.into_iter().flatten()
    }

    /// Column within whose values the records may be in any order: a list that is cut there has gaps.
    pub fn group(&self) -> Option<&'static str> {
        match &self.rule {
            Rule::Sequence(Sequence { groups: Groups::Each, .. }) => None,
            Rule::Sequence(Sequence { groups: Groups::Of(column) | Groups::Separate(column), .. }) => Some(column),
            Rule::Custody(moves) | Rule::Balances(moves) => Some(moves.height),
        }
    }
}

/// Form of a law, with the columns in their roles.
#[derive(Debug)]
pub enum Rule {
    Sequence(Sequence),
    Custody(Moves),
    Balances(Moves),
}

/// Whole numbers that follow each other.
#[derive(Debug)]
pub struct Sequence {
    pub number: &'static str,
    pub groups: Groups,
    /// Column that has to be the argument of the second name: other records have other sequences.
    pub owner: Option<(&'static str, &'static str)>,
    /// Column of the state: a pending record may leave a gap, or fill one.
    pub state: Option<&'static str>,
    /// An argument, and its value, with which the list has the whole sequence from 0 on if it has 0.
    pub whole: Option<(&'static str, &'static str)>,
}

/// Records that are listed in any order.
#[derive(Clone, Copy, Debug)]
pub enum Groups {
    /// The list is in order.
    Each,
    /// Records with the same value of a column.
    Of(&'static str),
    /// Records with the same value of a column, which have a sequence of their own.
    Separate(&'static str),
}

/// Things that move from one holder to another.
#[derive(Debug)]
pub struct Moves {
    pub from: &'static str,
    pub to: &'static str,
    pub amount: &'static str,
    pub id: &'static str,
    pub height: &'static str,
    pub state: &'static str,
    pub protocol: &'static str,
}

/// Value of a state column before anything has happened.
pub const PENDING: &str = "pending";
/// Value of a state column where everything has happened.
pub const SUCCESS: &str = "success";
/// Protocol of tokens with one holder for each id.
pub const UNIQUE: &str = "ERC721";
/// Protocol of tokens with amounts of ids, which no contract changes without a transfer.
pub const COUNTED: &str = "ERC1155";
/// Sender of what is minted, and receiver of what is burned.
pub const ZERO_ADDRESS: &str = "0x0000000000000000000000000000000000000000";

const TRANSFERS: Moves = Moves {
    from: "from_address",
    to: "to_address",
    amount: "amount",
    id: "token_id",
    height: "height",
    state: "state",
    protocol: "protocol_type",
};
const ALL_AMOUNTS: &[(&str, Option<&str>)] = &[("min_amount", None), ("max_amount", None)];

const fn numbers(number: &'static str) -> Sequence {
    Sequence { number, groups: Groups::Each, owner: None, state: None, whole: None }
}

pub static LAWS: [Law; 5] = [
    Law {
        name: "nonces",
        endpoint: "address_transactions",
        without: &[("direction", Some("to"))],
        rule: Rule::Sequence(Sequence {
            owner: Some(("from_address", "address")),
            groups: Groups::Of("height"),
            state: Some("state"),
            whole: Some(("direction", "from")),
            ..numbers("nonce")
        }),
        assumption: "an address numbers its transactions from 0 on without a gap, failed ones too",
    },
    Law {
        name: "heights",
        endpoint: "blocks",
        without: &[],
        rule: Rule::Sequence(numbers("height")),
        assumption: "each height has a block",
    },
    Law {
        name: "log_indexes",
        endpoint: "logs",
        without: &[],
        rule: Rule::Sequence(Sequence { groups: Groups::Separate("tx_id"), ..numbers("log_index") }),
        assumption: "the logs of a transaction follow each other in its block",
    },
    Law {
        name: "custody",
        endpoint: "token_transfers",
        without: ALL_AMOUNTS,
        rule: Rule::Custody(TRANSFERS),
        assumption: "a token id has one holder at a time, and changes it by transfers only",
    },
    Law {
        name: "balances",
        endpoint: "token_transfers",
        without: ALL_AMOUNTS,
        rule: Rule::Balances(TRANSFERS),
        assumption: "balances change by transfers only, which a token that rebases or issues without one does not obey",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::endpoint;

    #[test]
    fn laws_name_declared_columns_and_parameters() {
        for law in &LAWS {
            let endpoint = endpoint(law.endpoint).unwrap();
            let mut params: Vec<&str> = law.without.iter().map(|(name, _)| *name).collect();
            if let Rule::Sequence(Sequence { owner, whole, .. }) = &law.rule {
                params.extend(owner.map(|(_, name)| name).into_iter().chain(whole.map(|(name, _)| name)));
            }
            let columns: Vec<&str> = law.columns().collect();
            assert!(columns.iter().all(|name| endpoint.record().position(name).is_some()), "{}: {columns:?}", law.name);
            assert!(params.iter().all(|name| endpoint.param(name).is_some()), "{}: {params:?}", law.name);
        }
    }
}
