//! The call of a run: its arguments, its client, and the lists whose records it has to give.

use std::sync::Arc;

use chainframe::cassette::Cassette;
use chainframe::client::{Client, Concurrency, Credentials, Secret, Settings, SettingsInput};
use chainframe::interface::{Deployment, endpoint};
use chainframe::query::{Arg, Options, Query};

use super::plan::{Kind, Plan};
use super::verdict::decode;
use super::world::World;

/// A call with its arguments, and the lists whose records it has to give.
pub struct Call {
    name: &'static str,
    pub args: Vec<(String, Arg)>,
    /// Key of the list in `State::versions`.
    pub truth: String,
}

impl Call {
    pub fn of(plan: &Plan, world: &World) -> Self {
        let base = |name: &str| {
            let endpoint = endpoint(name).unwrap();
            let chain = if endpoint.path.contains("{zone}") { "ZONE_CHAIN" } else { "MAIN" };
            format!("{}?chainShortName={chain}", Deployment::default().expand(endpoint.path))
        };
        let heights = |name: &str, column: &str| -> Vec<i64> {
            let body = world.service.whole_list(&base(name)).unwrap();
            let columns = decode(name, &body);
            let column = columns.record().position(column).unwrap();
            (0..columns.rows()).filter_map(|row| format!("{:?}", columns.value(column, row)).between()).collect()
        };
        let integer = |value: i64| Arg::Integer(value.to_string());
        let call = match plan.kind {
            Kind::Follow(name @ "address_transactions") => {
                // The sender of the transactions by which the lists grow.
                world.service.grow(1).unwrap();
                let columns = decode("transactions", &world.service.whole_list(&base("transactions")).unwrap());
                let sender = columns.text(columns.record().position("input").unwrap(), 0).unwrap().to_owned();
                let truth = format!("{}&address={sender}", base(name));
                Self { name, args: vec![("address".into(), Arg::String(sender))], truth }
            }
            Kind::Follow(name) if plan.follow.window.is_some() => {
                let lowest = heights(name, "height").into_iter().min().unwrap_or(0);
                Self { name, args: vec![("start_height".into(), integer(lowest))], truth: base(name) }
            }
            Kind::List(name) | Kind::Follow(name) => Self { name, args: Vec::new(), truth: base(name) },
            Kind::Gather | Kind::Cassette => Self { name: "blocks", args: Vec::new(), truth: base("blocks") },
            Kind::Range => {
                let name = "cross_chain_transactions";
                let known = heights(name, "main_block_height");
                let (low, high) = (known.iter().min().copied().unwrap_or(1), known.iter().max().copied().unwrap_or(1));
                let start = low + world.draw((high - low + 1) as u64) as i64;
                let truth = format!("{}&startBlockHeight={start}&endBlockHeight={high}", base(name));
                Self {
                    name,
                    args: vec![("start_height".into(), integer(start)), ("end_height".into(), integer(high))],
                    truth,
                }
            }
            Kind::Heights => {
                let name = "transactions";
                let newest = heights(name, "height").into_iter().max().unwrap_or(1);
                let start = newest - world.draw(8) as i64;
                let each = (start..=newest).map(|height| format!("{}&height={height}", base(name)));
                let truth = each.collect::<Vec<_>>().join(" ");
                let args = vec![("start_height".into(), integer(start)), ("end_height".into(), integer(newest))];
                Self { name, args, truth }
            }
            Kind::TransactionsByHash | Kind::Logs => {
                let body = world.service.whole_list(&base("transactions")).unwrap();
                let columns = decode("transactions", &body);
                let column = columns.record().position("tx_id").unwrap();
                let some = 1 + world.draw(columns.rows().min(45) as u64) as usize;
                let hashes: Vec<String> =
                    (0..some).filter_map(|row| columns.text(column, row).map(str::to_owned)).collect();
                let name = if plan.kind == Kind::Logs { "logs" } else { "transactions_by_hash" };
                let each = hashes.iter().map(|hash| format!("{}&txId={hash}", base(name)));
                let truth = each.collect::<Vec<_>>().join(" ");
                Self { name, args: vec![("tx_ids".into(), Arg::List(hashes))], truth }
            }
        };
        world.watch(&call.truth);
        call
    }
}

trait Between {
    /// The number within `Integer(…)`.
    fn between(&self) -> Option<i64>;
}

impl Between for String {
    fn between(&self) -> Option<i64> {
        self.trim_start_matches("Integer(").trim_end_matches(')').parse().ok()
    }
}

pub fn client(world: &Arc<World>, cassette: Option<Cassette>) -> Client {
    let plan = &world.plan;
    let secret = |text: &str| Secret::new(text.into());
    let credentials = Credentials {
        api_key: secret("local-key"),
        secret_key: secret("local-secret"),
        passphrase: secret("local-passphrase"),
    };
    let settings = Settings::new(SettingsInput {
        deployment: plan.deployment(),
        timeout: plan.timeout,
        deadline: plan.deadline,
        max_retries: plan.max_retries,
        rate_limit: plan.rate_limit,
        concurrency: Concurrency::Fixed(plan.concurrency),
        cassette,
        ..SettingsInput::minimal("https://simulated.invalid", credentials)
    });
    Client::with_environment(settings.unwrap(), world.environment()).unwrap()
}

pub fn query(client: &Client, call: &Call, plan: &Plan) -> Query {
    let endpoint = endpoint(call.name).unwrap();
    let page_size = plan.page_size.filter(|_| endpoint.page_size_max().is_some());
    let options = Options { page_size, max_items: plan.max_items, ..Options::default() };
    Query::new(client, endpoint, call.args.clone(), options).unwrap()
}
