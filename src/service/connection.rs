//! Connections under the HTTP server. A handler can abort its connection with a reset, where the HTTP server only ever
//! closes gracefully, and a client that does not finish sending a request's head is disconnected.

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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Sleep;

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

    /// Marks the head of the current request as complete.
    pub fn set_dispatched(&self) {
        self.0.dispatched.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
pub struct Connections {
    pub listener: TcpListener,
    pub header_timeout: Duration,
}

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    handle: ConnectionHandle,
    header_timeout: Duration,
    /// Runs from the first byte of a request to its dispatch.
    header_deadline: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    fn aborted(&self) -> Option<io::Error> {
        self.handle.0.aborted.load(Ordering::Acquire).then(|| {
            // Without lingering the system sends a reset; a graceful close would look like a complete response.
            match self.stream.set_zero_linger() {
                Ok(()) => io::ErrorKind::ConnectionReset.into(),
                Err(error) => error,
            }
        })
    }
}

impl Listener for Connections {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Only an optimisation: responses are sent without waiting for more data.
                    let _ = stream.set_nodelay(true);
                    let (handle, header_timeout) = (ConnectionHandle::default(), self.header_timeout);
                    return (Connection { stream, handle, header_timeout, header_deadline: None }, address);
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
            }
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
        match self.aborted() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.aborted() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.aborted() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_shutdown(context),
        }
    }
}
