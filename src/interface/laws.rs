//! Laws that the records of a list obey, whatever the API returns: a record that is missing breaks them. Each names what it
//! assumes of the chain.

/// One law of the lists of one endpoint.
#[derive(Debug)]
pub struct Law {
    pub name: &'static str,
    pub endpoint: &'static str,
    /// Arguments with which the law is not checked.
    pub without: &'static [Exclusion],
    pub rule: Rule,
    /// Property of the chain without which the law need not hold.
    pub assumption: &'static str,
}

/// An argument with which a law is not checked.
#[derive(Debug)]
pub struct Exclusion {
    pub argument: &'static str,
    /// The only value of the argument that excludes the law; any, if there is none.
    pub value: Option<&'static str>,
}

impl Law {
    /// Columns without which the law cannot be checked.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        let columns = match &self.rule {
            Rule::Sequence(Sequence { number, owner, state, .. }) => {
                vec![Some(*number), self.group(), owner.as_ref().map(|owner| owner.column), *state]
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
    pub owner: Option<Owner>,
    /// Column of the state: a pending record may leave a gap, or fill one.
    pub state: Option<&'static str>,
    pub whole: Option<Whole>,
}

/// A column that has to have the value of an argument: other records have other sequences.
#[derive(Debug)]
pub struct Owner {
    pub column: &'static str,
    pub argument: &'static str,
}

/// An argument with which the list has the whole sequence from 0 on, if it has 0.
#[derive(Debug)]
pub struct Whole {
    pub argument: &'static str,
    pub value: &'static str,
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
const ALL_AMOUNTS: &[Exclusion] =
    &[Exclusion { argument: "min_amount", value: None }, Exclusion { argument: "max_amount", value: None }];

const fn numbers(number: &'static str) -> Sequence {
    Sequence { number, groups: Groups::Each, owner: None, state: None, whole: None }
}

pub static LAWS: [Law; 5] = [
    Law {
        name: "nonces",
        endpoint: "address_transactions",
        without: &[Exclusion { argument: "direction", value: Some("to") }],
        rule: Rule::Sequence(Sequence {
            owner: Some(Owner { column: "from_address", argument: "address" }),
            groups: Groups::Of("height"),
            state: Some("state"),
            whole: Some(Whole { argument: "direction", value: "from" }),
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
            let mut params: Vec<&str> = law.without.iter().map(|exclusion| exclusion.argument).collect();
            if let Rule::Sequence(Sequence { owner, whole, .. }) = &law.rule {
                params.extend(owner.as_ref().map(|owner| owner.argument));
                params.extend(whole.as_ref().map(|whole| whole.argument));
            }
            let columns: Vec<&str> = law.columns().collect();
            assert!(columns.iter().all(|name| endpoint.record().position(name).is_some()), "{}: {columns:?}", law.name);
            assert!(params.iter().all(|name| endpoint.param(name).is_some()), "{}: {params:?}", law.name);
        }
    }
}
