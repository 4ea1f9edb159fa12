//! Connections under the HTTP server. A handler can abort its connection with a reset, where the HTTP server only ever
//! closes gracefully, and a client that does not finish sending a request's head is disconnected. Requests that the
//! HTTP server rejects itself are logged here, since no handler sees them.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use chrono::Utc;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

use super::request_log::{RequestEntry, RequestLog};

/// Bytes of a request that are kept for the log.
const MAX_HEAD: usize = 8 << 10;

/// Signals from a request's handler to the connection of the request.
#[derive(Clone, Debug, Default)]
pub struct ConnectionHandle(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    aborted: AtomicBool,
    dispatched: AtomicBool,
}

impl ConnectionHandle {
    /// Resets the connection in place of writing to it.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
    }

    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// Marks the head of the current request as complete.
    pub fn set_dispatched(&self) {
        self.0.dispatched.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
pub struct Connections {
    pub listener: TcpListener,
    pub header_timeout: Duration,
    pub request_log: Arc<RequestLog>,
}

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    handle: ConnectionHandle,
    header_timeout: Duration,
    /// Runs from the first byte of a request to its dispatch.
    header_deadline: Option<Pin<Box<Sleep>>>,
    /// The beginning of the request.
    head: Vec<u8>,
    /// True once a request was rejected, which is the last one of its connection.
    rejected: bool,
    request_log: Arc<RequestLog>,
}

impl Connection {
    /// Fails if the connection is to be reset.
    fn check_open(&self) -> io::Result<()> {
        if !self.handle.is_aborted() {
            return Ok(());
        }
        // Without lingering the system sends a reset; a graceful close would look like a complete response.
        self.stream.set_zero_linger()?;
        Err(io::ErrorKind::ConnectionReset.into())
    }

    /// Logs the request if these bytes are a response that the HTTP server makes without a handler.
    fn log_rejection(&mut self, bytes: &[u8]) {
        let Some(status) = status_of_rejection(bytes) else { return };
        if self.rejected {
            return;
        }
        self.rejected = true;
        #[expect(clippy::disallowed_methods, reason = "a server on a socket has the system's time")]
        let time = Utc::now();
        self.request_log.count();
        self.request_log.add(RequestEntry::unreadable(&self.head, status, time));
    }
}

/// The status of a response that has no content type, which every handler sets.
fn status_of_rejection(bytes: &[u8]) -> Option<u16> {
    const STATUS_LINE: &[u8] = b"HTTP/1.1 ";
    const CONTENT_TYPE: &[u8] = b"content-type:";
    let status = bytes.strip_prefix(STATUS_LINE)?.get(..3)?;
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n").map_or(bytes, |end| &bytes[..end]);
    let is_typed = head.windows(CONTENT_TYPE.len()).any(|name| name.eq_ignore_ascii_case(CONTENT_TYPE));
    std::str::from_utf8(status).ok()?.parse().ok().filter(|status| *status >= 400 && !is_typed)
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Only an optimization: responses are sent without waiting for more data.
                    let _ = stream.set_nodelay(true);
                    let connection = Connection {
                        stream,
                        handle: ConnectionHandle::default(),
                        header_timeout: self.header_timeout,
                        header_deadline: None,
                        head: Vec::new(),
                        rejected: false,
                        request_log: self.request_log.clone(),
                    };
                    return (connection, address);
                }
                // Out of file handles, mostly: some may come free.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Connections>> for ConnectionHandle {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        stream.io().handle.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.handle.0.dispatched.swap(false, Ordering::AcqRel) {
            self.header_deadline = None;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before && self.header_deadline.is_none() {
                self.header_deadline = Some(Box::pin(tokio::time::sleep(self.header_timeout)));
                self.head.clear();
            }
            let left = MAX_HEAD.saturating_sub(self.head.len());
            self.head.extend(buffer.filled()[before..].iter().take(left));
            return read;
        }
        match &mut self.header_deadline {
            Some(deadline) => deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into())),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check_open()?;
        self.log_rejection(bytes);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check_open()?;
        self.log_rejection(slices.first().map_or(&[], |slice| slice));
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_open()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_responses_without_a_handler_are_rejections() {
        for (response, status) in [
            (&b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"[..], Some(400)),
            (b"HTTP/1.1 431 Request Header Fields Too Large\r\n\r\ncontent-type: x", Some(431)),
            (b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n{}", None),
            (b"HTTP/1.1 200 OK\r\n\r\n", None),
            (b"{\"code\":\"0\"}", None),
            (b"", None),
        ] {
            assert_eq!(status_of_rejection(response), status, "{}", response.escape_ascii());
        }
    }
}
