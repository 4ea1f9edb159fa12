//! Empty responses that nothing has confirmed, since no page with records was known when they were believed. They are requested
//! once more as soon as one is known.

use futures_util::future::join_all;

use super::Client;
use super::get_request::GetRequest;

/// Requests beside one control request: records show that no response of the same time was a throttle.
const BESIDE_CONTROL: usize = 8;

impl Client {
    /// True if all of these requests have empty responses still, while a page that had records has some. Calls `on_send` for every
    /// attempt.
    pub async fn confirm_empty(&self, requests: &[GetRequest], on_send: &(dyn Fn() + Sync)) -> bool {
        let empty_responses = self.empty_responses();
        for requests in requests.chunks(BESIDE_CONTROL) {
            let again = join_all(requests.iter().map(|request| self.get_again(request, on_send))).await;
            let again = again.into_iter().collect::<Option<Vec<_>>>();
            let Some((sent, is_replayed)) = again.and_then(|again| again.into_iter().max()) else { return false };
            // A replay has the control request if the recording has it.
            if let Some(control) = empty_responses.control_after(sent)
                && !(is_replayed && self.is_played_out(&control.request.target))
            {
                self.check_control(&control, on_send).await;
            }
            if !empty_responses.confirm(requests.len(), sent) && !is_replayed {
                return false;
            }
        }
        true
    }
}
