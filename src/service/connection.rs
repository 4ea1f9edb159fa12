//! Connections that can be torn down under the HTTP server, which by itself only ever closes them politely.

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

/// Tears its connection down instead of letting it be written to.
#[derive(Clone, Debug, Default)]
pub struct Tear(Arc<AtomicBool>);

impl Tear {
    pub fn pull(&self) {
        self.0.store(true, Ordering::Release);
    }
}

#[derive(Debug)]
pub struct Connections(pub TcpListener);

#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    tear: Tear,
}

impl Connection {
    fn torn(&self) -> Option<io::Error> {
        self.tear.0.load(Ordering::Acquire).then(|| {
            // Without lingering the system answers with a reset; a polite close would look like a complete answer.
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
            match self.0.accept().await {
                Ok((stream, address)) => {
                    // Merely faster: answers go out without waiting for more to send.
                    let _ = stream.set_nodelay(true);
                    return (Connection { stream, tear: Tear::default() }, address);
                }
                // Out of file handles, mostly: some may come free.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl Connected<IncomingStream<'_, Connections>> for Tear {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        stream.io().tear.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.torn() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.torn() {
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
        match self.torn() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_shutdown(context),
        }
    }
}
