//! The network between the clients of one process and the service: it delays, loses and damages, and checks what a service
//! can see of its clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chainframe::client::{Phase, RateLimit, Response, Transport, TransportError};
use chainframe::service::Reply;
use futures_util::future::BoxFuture;
use http::header::{DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use tokio::time::{Instant, sleep};

use super::plan::Kind;
use super::world::{MAX_VERSIONS, World};

/// Timers of tokio have milliseconds.
const TICK: Duration = Duration::from_millis(2);
/// The pause after a throttle without `Retry-After`.
const THROTTLE_PAUSE: Duration = Duration::from_millis(400);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Timers fire late: requests may make up for as much.
const TIMER_SLACK: f64 = 0.010;

/// The network of one process, and what its service has seen of it.
pub struct Network {
    world: Arc<World>,
    client: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    in_flight: i64,
    sent: Vec<Instant>,
    targets: HashMap<String, Target>,
    last_decrease: Option<Instant>,
    /// False if the last decrease is that of a client which takes an empty page for a throttle.
    is_decrease_certain: bool,
    paused_until: Option<Instant>,
}

/// The requests for one target since its last success.
#[derive(Default)]
struct Target {
    first: Option<Instant>,
    failures: i64,
    not_before: Option<Instant>,
    is_hopeless: bool,
}

/// A request in flight; it may be cancelled at any moment.
struct InFlight<'a> {
    network: &'a Network,
    target: &'a str,
    finished: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut client = self.network.client.lock().unwrap();
        client.in_flight -= 1;
        let first = client.targets.get(self.target).and_then(|seen| seen.first);
        let took = first.map_or(Duration::ZERO, |first| first.elapsed());
        if !self.finished {
            self.network.forget(&mut client, self.target);
        }
        drop(client);
        let mut state = self.network.world.lock();
        state.longest = state.longest.max(took);
    }
}

/// The end of one attempt.
enum End {
    Reply(Reply),
    Failure(TransportError),
}

impl Network {
    pub fn new(world: &Arc<World>) -> Self {
        Self { world: world.clone(), client: Mutex::default() }
    }

    /// Forgets the attempts of a request, unless other queries make the same one.
    fn forget(&self, client: &mut Seen, target: &str) {
        if self.world.plan.is_alone() {
            client.targets.remove(target);
        }
    }

    /// Checks a request as it leaves.
    fn check_sent(&self, target: &str) {
        let (world, now) = (&self.world, Instant::now());
        world.lock().requests += 1;
        world.note(&format!("GET {target}"));
        let mut client = self.client.lock().unwrap();
        let plan = &world.plan;
        let mut violations = Vec::new();
        client.in_flight += 1;
        if client.in_flight > plan.concurrency {
            violations.push(format!("{} requests in flight of {}", client.in_flight, plan.concurrency));
        }
        client.sent.push(now);
        if let RateLimit::PerSecond(rate) = plan.rate_limit {
            let recent = client.sent.iter().rev().take(20).enumerate().skip(1);
            let mut too_fast = recent.filter(|(requests, sent)| {
                let seconds = now.duration_since(**sent).as_secs_f64() + TIMER_SLACK + TICK.as_secs_f64();
                *requests as f64 > rate * seconds + 1e-6
            });
            if let Some((requests, _)) = too_fast.next_back() {
                violations.push(format!("{} requests exceed {rate} per second", requests + 1));
            }
        }
        if plan.rate_limit == RateLimit::Auto && client.paused_until.is_some_and(|until| now + TICK < until) {
            violations.push("a request during the pause after a throttle".into());
        }
        let seen = client.targets.entry(target.to_owned()).or_default();
        seen.first.get_or_insert(now);
        let is_alone = plan.is_alone();
        // A page that was requested ahead, and was not used, may be requested again, whatever its response was.
        let is_in_turn = is_alone && plan.concurrency == 1;
        if seen.is_hopeless && is_in_turn {
            violations.push("a request is repeated that cannot succeed".into());
        }
        if is_in_turn && seen.not_before.is_some_and(|until| now + TICK < until) {
            violations.push("a request is repeated before Retry-After".into());
        }
        // One attempt more for a corrected clock. Repetitions of a request whose response was empty are no retries.
        let is_counted = plan.faults.empty == 0.0 && !matches!(plan.kind, Kind::Logs);
        if is_counted && is_alone && plan.is_quiet() && seen.failures > plan.max_retries + 1 {
            violations.push(format!("{} attempts of {}", seen.failures + 1, plan.max_retries + 1));
        }
        drop(client);
        violations.into_iter().for_each(|violation| world.violation(violation));
    }

    async fn attempt(&self, target: &str, headers: HeaderMap) -> End {
        let world = &self.world;
        let (plan, timeout) = (&world.plan, Duration::from_secs_f64(world.plan.timeout));
        let fault = |probability: f64| {
            let happens = world.chance(probability);
            world.lock().faults += u64::from(happens);
            happens
        };
        let pace = if world.lock().is_calm { 0.0 } else { 1.0 };
        let latency = || plan.latency.mul_f64(pace * world.draw(1_000) as f64 / 500.0);
        let lost = || End::Failure(TransportError::timed_out(Phase::Read, "no response", timeout));
        let (there, back) = (latency(), latency());
        if fault(plan.faults.loss) || there + back > timeout {
            sleep(timeout).await;
            return lost();
        }
        sleep(there).await;
        if fault(plan.faults.reset) {
            return End::Failure(TransportError::new(Phase::Read, "connection reset", true));
        }
        let reply = self.reply(target, headers, &fault);
        sleep(back).await;
        if fault(plan.faults.truncated) {
            if world.draw(2) == 0 {
                return End::Failure(TransportError::new(Phase::Body, "truncated", true));
            }
            let kept = world.draw(reply.body.len() as u64) as usize;
            return End::Reply(Reply { body: reply.body.slice(..kept), ..reply });
        }
        End::Reply(reply)
    }

    fn reply(&self, target: &str, headers: HeaderMap, fault: &dyn Fn(f64) -> bool) -> Reply {
        let world = &self.world;
        let (plan, faults) = (&world.plan, world.plan.faults);
        let reply =
            |status, body: &str| Reply { status, body: Bytes::copy_from_slice(body.as_bytes()), retry_after: None };
        let envelope = |code: &str| format!(r#"{{"code":"{code}","msg":"simulated","data":[]}}"#);
        let is_changing = world.lock().versions.values().all(|versions| versions.len() < MAX_VERSIONS);
        if is_changing && world.chance(plan.growth.0) {
            let records = 1 + world.draw(plan.growth.1.into()) as u32;
            world.grow(records);
        }
        let depth = 1 + world.draw(3) as u32;
        if is_changing && world.chance(plan.reorg) && world.keeps_given(depth) {
            world.note(&format!("the newest {depth} heights are replaced"));
            world.lock().reorgs += 1;
            world.service.reorganize(depth).expect("the database reorganizes");
            world.keep_versions();
        }
        if fault(faults.unavailable) {
            return reply(503, "");
        }
        if fault(faults.error_code) {
            return reply(200, &envelope("50013"));
        }
        if fault(faults.throttle) {
            let retry_after = (world.draw(2) == 0).then(|| world.draw(4) as f64);
            return Reply { retry_after, ..reply(429, &envelope("50011")) };
        }
        if fault(faults.html) {
            return reply(200, "<!DOCTYPE html><html></html>");
        }
        if fault(faults.hopeless) {
            return reply(400, &envelope("50014"));
        }
        let real = world.service.get(target, headers, world.service_now());
        let text = String::from_utf8_lossy(&real.body).into_owned();
        if text.contains("\"50113\"") {
            world.violation(format!("the signature of {target} is invalid"));
        }
        let is_later_page = target.rsplit_once("&page=").is_some_and(|(_, page)| page != "1");
        let has_records = text.contains("[{\"") && text.matches("{\"").count() > 2;
        if real.status == 200 && is_later_page && has_records && fault(faults.empty) {
            return reply(200, &envelope("0").replace("simulated", ""));
        }
        if real.status == 200
            && has_records
            && let Some(list) = text.rfind("\"transactionList\":[").or_else(|| text.rfind("\"data\":[{\"hash\""))
            && fault(faults.doubled)
        {
            let (head, list) = (&text[..text.len() - 3], &text[list..text.len() - 3]);
            return reply(200, &format!("{head},{list}}}]}}"));
        }
        real
    }

    /// Keeps what a response obliges the client to.
    fn check_received(&self, target: &str, sent: Instant, end: &End) {
        let (mut client, now) = (self.client.lock().unwrap(), Instant::now());
        let reply = match end {
            End::Reply(reply) => reply,
            End::Failure(_) => {
                client.targets.entry(target.to_owned()).or_default().failures += 1;
                return;
            }
        };
        let text = String::from_utf8_lossy(&reply.body);
        let is_throttle = reply.status == 429;
        let retry_after = Duration::from_secs_f64(reply.retry_after.unwrap_or(0.0)).min(MAX_RETRY_AFTER);
        if is_throttle {
            let is_after = |pause: Duration| client.last_decrease.is_none_or(|decrease| sent > decrease + pause);
            let (counts, is_new) = (is_after(Duration::ZERO), is_after(Duration::from_secs(1)));
            if counts {
                client.paused_until = client.paused_until.max(Some(now + retry_after.max(THROTTLE_PAUSE)));
            }
            // A client that did not take an empty page for a throttle decreases its rate now.
            if is_new || !client.is_decrease_certain {
                (client.last_decrease, client.is_decrease_certain) = (Some(now), true);
            }
        }
        // A client that takes an empty page for a throttle ignores throttles of requests that were sent before it.
        if reply.status == 200 && text.contains("\"data\":[]") {
            (client.last_decrease, client.is_decrease_certain) = (Some(now), false);
        }
        let seen = client.targets.entry(target.to_owned()).or_default();
        if is_throttle {
            seen.not_before = Some(now + retry_after);
        }
        seen.is_hopeless = reply.status == 400;
        if reply.status == 200 && text.starts_with("{\"code\":\"0\"") && text.ends_with('}') && text.contains("[{") {
            self.forget(&mut client, target);
        } else {
            seen.failures += 1;
        }
    }
}

impl Transport for Network {
    fn get<'a>(
        &'a self,
        target: &'a str,
        headers: HeaderMap,
        _timeout: Duration,
    ) -> BoxFuture<'a, Result<Response, TransportError>> {
        Box::pin(async move {
            self.check_sent(target);
            let mut request = InFlight { network: self, target, finished: false };
            let sent = Instant::now();
            let end = self.attempt(target, headers).await;
            request.finished = true;
            self.check_received(target, sent, &end);
            match end {
                End::Failure(error) => {
                    self.world.note(&format!("{}: {}", error.phase, error.problem));
                    Err(error)
                }
                End::Reply(reply) => {
                    self.world.note(&format!("status {} with {} bytes", reply.status, reply.body.len()));
                    let mut headers = HeaderMap::new();
                    let date = httpdate::fmt_http_date(self.world.service_now().into());
                    headers.insert(DATE, date.parse().expect("a date"));
                    if let Some(after) = reply.retry_after {
                        headers.insert(RETRY_AFTER, HeaderValue::from_str(&after.to_string()).expect("a number"));
                    }
                    Ok(Response { status: reply.status, headers, body: reply.body })
                }
            }
        })
    }
}
