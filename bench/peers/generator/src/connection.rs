use polling::{Event, PollMode, Poller};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// What a connection has just learnt.
pub enum Progress {
    /// More is to come.
    Waiting,
    Answered {
        status: u16,
        body: Vec<u8>,
        keep: bool,
    },
    /// The server closed it, or it failed.
    Closed,
}

/// One keep-alive connection with at most one request under way.
pub struct Connection {
    socket: Socket,
    key: usize,
    /// Index of the request that is being written, and how much of it is.
    writing: Option<(usize, usize)>,
    waits_to_write: bool,
    received: Vec<u8>,
}

/// A reply's head is read with at most this many header lines.
const MOST_HEADERS: usize = 64;
const LARGEST_REPLY: usize = 16 << 20;

impl Connection {
    pub fn open(address: SocketAddr, key: usize, poller: &Poller) -> Result<Self, Error> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            other => other?,
        }
        // SAFETY: `close` takes the socket from the poller before it is dropped.
        unsafe { poller.add_with_mode(&socket, Event::readable(key), PollMode::Level)? };
        Ok(Self { socket, key, writing: None, waits_to_write: false, received: Vec::with_capacity(32 << 10) })
    }

    pub fn close(self, poller: &Poller) -> Result<(), Error> {
        poller.delete(&self.socket)
    }

    pub fn begin(&mut self, request: usize, requests: &[Vec<u8>], poller: &Poller) -> Result<Progress, Error> {
        self.writing = Some((request, 0));
        self.write(requests, poller)
    }

    /// Goes on writing; call it when the socket is writable.
    pub fn write(&mut self, requests: &[Vec<u8>], poller: &Poller) -> Result<Progress, Error> {
        while let Some((request, written)) = self.writing {
            let bytes = &requests[request];
            match self.socket.write(&bytes[written..]) {
                Ok(more) if written + more == bytes.len() => self.writing = None,
                Ok(more) => self.writing = Some((request, written + more)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Progress::Closed),
            }
        }
        let waits = self.writing.is_some();
        if waits != self.waits_to_write {
            self.waits_to_write = waits;
            let interest = if waits { Event::all(self.key) } else { Event::readable(self.key) };
            poller.modify_with_mode(&self.socket, interest, PollMode::Level)?;
        }
        Ok(Progress::Waiting)
    }

    /// Reads what has come; call it when the socket is readable.
    pub fn read(&mut self, scratch: &mut [u8]) -> Result<Progress, Error> {
        loop {
            match self.socket.read(scratch) {
                Ok(0) => return Ok(Progress::Closed),
                Ok(count) => {
                    self.received.extend_from_slice(&scratch[..count]);
                    if count < scratch.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Ok(Progress::Closed),
            }
        }
        if self.received.len() > LARGEST_REPLY {
            return Err(Error::new(ErrorKind::InvalidData, "a reply is larger than 16 MiB"));
        }
        self.parse()
    }

    fn parse(&mut self) -> Result<Progress, Error> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut reply = httparse::Response::new(&mut headers);
        let invalid = |message: String| Error::new(ErrorKind::InvalidData, message);
        let head = match reply.parse(&self.received) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(Progress::Waiting),
            Err(error) => return Err(invalid(format!("a reply's head: {error}"))),
        };
        let header = |name: &str| {
            let found = reply.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.map(|header| String::from_utf8_lossy(header.value).to_ascii_lowercase())
        };
        let status = reply.code.unwrap_or(0);
        let keep = header("connection").as_deref() != Some("close");
        let (body, end) = match header("content-length") {
            Some(length) => {
                let length: usize = length.trim().parse().map_err(|_| invalid(format!("content-length: {length}")))?;
                if self.received.len() < head + length {
                    return Ok(Progress::Waiting);
                }
                (self.received[head..head + length].to_vec(), head + length)
            }
            None if header("transfer-encoding").as_deref() == Some("chunked") => match dechunk(&self.received[head..])?
            {
                Some((body, length)) => (body, head + length),
                None => return Ok(Progress::Waiting),
            },
            None => return Err(invalid("a reply has neither content-length nor chunks".to_owned())),
        };
        if end != self.received.len() {
            return Err(invalid("a reply is followed by bytes that nobody asked for".to_owned()));
        }
        self.received.clear();
        Ok(Progress::Answered { status, body, keep })
    }
}

/// The body and how many bytes it took; none while its end has not come.
fn dechunk(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Error> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((line, size))) => {
                let size = size as usize;
                // The chunk, and the line break after it; after the last one, that of the empty trailer.
                let end = at + line + size + 2;
                if bytes.len() < end {
                    return Ok(None);
                }
                body.extend_from_slice(&bytes[at + line..at + line + size]);
                at = end;
                if size == 0 {
                    return Ok(Some((body, at)));
                }
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Error::new(ErrorKind::InvalidData, "a chunk without a size")),
        }
    }
}
