//! SQL conditions for a request's parameters. Values are always bound; names come from the declaration.

use rusqlite::types::Value as Sql;

use super::parameters::{ParamValue, Parameters};
use super::schema::{self, Table};
use crate::interface::{Endpoint, ParamKind};

/// A selection of a table's rows, and their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    conditions: Vec<String>,
    pub values: Vec<Sql>,
    /// Largest first by this column; without one, newest first.
    pub order: Option<&'static str>,
}

impl Filter {
    pub fn of(endpoint: &Endpoint, table: &Table, parameters: &Parameters) -> Self {
        let mut filter = Self::default();
        if endpoint.name == "tokens" {
            filter.tokens(table, parameters);
        }
        if let Some(ParamKind::Amount { min }) = endpoint.param("min_amount").map(|param| param.kind)
            && endpoint.name == "large_transactions"
        {
            let requested = parameters.get("min_amount").map(sql);
            let min_rank = schema::rank(&min.to_string()).map_or(Sql::Null, Sql::Blob);
            filter.add("amount_rank > ?", [requested.unwrap_or(min_rank)]);
        }
        for (name, value) in &parameters.values {
            filter.parameter(endpoint, table, name, value, parameters);
        }
        filter
    }

    fn parameter(&mut self, endpoint: &Endpoint, table: &Table, name: &str, value: &ParamValue, all: &Parameters) {
        let height = table.height().unwrap_or("height");
        match (endpoint.name, name) {
            ("tokens", "protocol_type" | "order_by") | ("large_transactions", "min_amount") => {}
            // Both ends of a range of times are excluded.
            (_, "start_time") => self.add("issue_date > ?", [sql(value)]),
            (_, "end_time") => self.add("issue_date < ?", [sql(value)]),
            (_, "min_amount") => self.add("amount_rank >= ?", [sql(value)]),
            (_, "max_amount") => self.add("amount_rank <= ?", [sql(value)]),
            (_, "height") => self.add(&format!("{height} = ?"), [sql(value)]),
            (_, "start_height") => self.add(&format!("{height} >= ?"), [sql(value)]),
            (_, "end_height") => self.add(&format!("{height} <= ?"), [sql(value)]),
            ("cross_chain_transactions", "tx_id") => self.any(&["id", "main_tx_hash", "zone_tx_hash"], value),
            ("cross_chain_transactions", "address") => {
                self.any(&["from_address", "to_address", "source_address", "target_address"], value);
            }
            ("address_transactions", "address") => self.party(table, value, all.get("direction")),
            ("address_transactions", "direction") => {}
            (_, column) if table.has(column) => self.add(&format!("\"{column}\" = ?"), [sql(value)]),
            _ => {}
        }
    }

    fn tokens(&mut self, table: &Table, parameters: &Parameters) {
        let protocol = match parameters.get("protocol_type") {
            Some(ParamValue::Choice(protocol)) => protocol,
            _ => "token_20",
        };
        let name = Sql::Text(protocol.replace("token_", "ERC"));
        if table.user_data {
            // Without a requested protocol, tokens without one are listed too.
            self.add(
                "coalesce(nullif(protocol_type, ''), ?) IN (?, ?)",
                [name.clone(), name, Sql::Text(protocol.into())],
            );
        } else {
            self.add("protocol_type = ?", [name]);
        }
        self.order = Some(match parameters.get("order_by") {
            Some(ParamValue::Choice("transactionAmount24h")) if protocol == "token_20" => "transaction_amount_24h_rank",
            _ => "total_market_cap_rank",
        });
    }

    /// Transactions an address sent, received, or either, alone or among others.
    fn party(&mut self, table: &Table, address: &ParamValue, direction: Option<&ParamValue>) {
        let sides = match direction {
            Some(ParamValue::Choice("from")) => &["from"][..],
            Some(ParamValue::Choice("to")) => &["to"],
            _ => &["from", "to"],
        };
        if table.user_data {
            let conditions =
                sides.iter().map(|side| format!("instr(',' || lower({side}_address) || ',', ',' || ? || ',') > 0"));
            let conditions: Vec<String> = conditions.collect();
            return self.add(&format!("({})", conditions.join(" OR ")), vec![sql(address); sides.len()]);
        }
        let mut selects = Vec::new();
        let mut values = Vec::new();
        for side in sides {
            selects.push(format!("SELECT seq FROM chain_transaction WHERE {side}_address = ?"));
            selects.push("SELECT seq FROM party WHERE address = ? AND side = ?".to_owned());
            values.extend([sql(address), sql(address), Sql::Text((*side).into())]);
        }
        self.add(&format!("seq IN ({})", selects.join(" UNION ")), values);
    }

    fn any(&mut self, columns: &[&str], value: &ParamValue) {
        let conditions: Vec<String> = columns.iter().map(|column| format!("\"{column}\" = ?")).collect();
        self.add(&format!("({})", conditions.join(" OR ")), vec![sql(value); columns.len()]);
    }

    fn add(&mut self, condition: &str, values: impl IntoIterator<Item = Sql>) {
        self.conditions.push(condition.into());
        self.values.extend(values);
    }

    /// True if it selects all rows in their own order.
    pub fn is_all(&self) -> bool {
        self.conditions.is_empty() && self.order.is_none()
    }

    /// The rows after the one bound last, in the reverse of the order in which they are listed.
    pub fn statement(&self, table: &Table) -> String {
        let mut conditions = self.conditions.join(" AND ");
        conditions.push_str(if conditions.is_empty() { "seq > ?" } else { " AND seq > ?" });
        let order = self.order.map_or_else(|| "seq".to_owned(), |column| format!("{column}, seq DESC"));
        format!("SELECT seq FROM {} WHERE {conditions} ORDER BY {order}", table.name)
    }
}

fn sql(value: &ParamValue) -> Sql {
    match value {
        ParamValue::Text(text) => Sql::Text(text.clone()),
        ParamValue::Choice(choice) => Sql::Text((*choice).into()),
        ParamValue::Height(number) | ParamValue::Time(number) => Sql::Integer(*number),
        ParamValue::Amount(rank) => Sql::Blob(rank.clone()),
        // Hashes are looked up one by one, not filtered by.
        ParamValue::Hashes(_) => Sql::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::{ENDPOINTS, Shape};

    fn value(kind: ParamKind) -> ParamValue {
        match kind {
            ParamKind::OneOf(choices) => ParamValue::Choice(choices[choices.len() - 1]),
            ParamKind::Height => ParamValue::Height(1),
            ParamKind::Time => ParamValue::Time(1),
            ParamKind::Amount { .. } => ParamValue::Amount(vec![1]),
            ParamKind::Text | ParamKind::Hashes { .. } => ParamValue::Text("0xa".into()),
        }
    }

    /// A declared parameter without a filter here would be ignored silently.
    #[test]
    fn every_declared_parameter_of_a_list_changes_the_filter() {
        let mut checked = 0;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| matches!(endpoint.shape, Shape::Paged { .. })) {
            let table = Table::of(endpoint.record());
            let sent = |param: &&crate::interface::Param| param.wire().is_some();
            let required: Vec<_> = endpoint.params.iter().filter(|param| param.required).collect();
            for param in endpoint.params.iter().filter(sent) {
                let base = required.iter().filter(|other| other.name != param.name);
                let mut values: Vec<_> = base.map(|param| (param.name, value(param.kind))).collect();
                let mut parameters = Parameters { values: values.clone(), page: 1, limit: 20 };
                let before = Filter::of(endpoint, table, &parameters);
                values.push((param.name, value(param.kind)));
                if param.name == "order_by" {
                    values.push(("protocol_type", ParamValue::Choice("token_20")));
                }
                parameters.values = values;
                assert_ne!(Filter::of(endpoint, table, &parameters), before, "{}.{}", endpoint.name, param.name);
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked} parameters found");
    }

    #[test]
    fn values_are_bound_as_parameters() {
        let hostile = "0x' OR 1=1 --";
        for endpoint in ENDPOINTS.iter().filter(|endpoint| matches!(endpoint.shape, Shape::Paged { .. })) {
            let table = Table::of(endpoint.record());
            let texts = endpoint.params.iter().filter(|param| param.kind == ParamKind::Text);
            let values = texts.map(|param| (param.name, ParamValue::Text(hostile.into()))).collect();
            let filter = Filter::of(endpoint, table, &Parameters { values, page: 1, limit: 20 });
            let statement = filter.statement(table);
            assert!(!statement.contains("OR 1=1"), "{statement}");
            assert_eq!(statement.matches('?').count(), filter.values.len() + 1, "{statement}");
        }
    }
}
