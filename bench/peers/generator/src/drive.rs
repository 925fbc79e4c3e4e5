use crate::connection::{Connection, Progress};
use crate::plan::{Pattern, Plan};
use crate::report::{Counts, Report, cpu_seconds};
use polling::{Events, Poller};
use std::collections::VecDeque;
use std::io::Error;
use std::time::{Duration, Instant};

/// How often requests are looked through for those that are to be given up.
const SWEEP_SECONDS: f64 = 0.1;

/// A place for a connection; its key at the poller is its index.
#[derive(Default)]
struct Place {
    connection: Option<Connection>,
    /// When the request under way was to leave, in seconds from the start.
    under_way: Option<f64>,
}

struct Drive<'a> {
    plan: &'a Plan,
    requests: &'a [Vec<u8>],
    poller: Poller,
    places: Vec<Place>,
    /// Places without a request, the last used on top: few connections stay busy rather than many now and then.
    free: Vec<usize>,
    /// When requests that found no free place were to leave.
    waiting: VecDeque<f64>,
    next_request: usize,
    counts: Counts,
    started: Instant,
}

pub fn drive(plan: &Plan, requests: &[Vec<u8>]) -> Result<Report, Error> {
    let mut drive = Drive {
        plan,
        requests,
        poller: Poller::new()?,
        places: (0..plan.connections).map(|_| Place::default()).collect(),
        free: (0..plan.connections).rev().collect(),
        waiting: VecDeque::new(),
        next_request: 0,
        counts: Counts::default(),
        started: Instant::now(),
    };
    let cpu_before = cpu_seconds();
    drive.run()?;
    Ok(drive.counts.report(plan.seconds, cpu_seconds() - cpu_before))
}

impl Drive<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let arrivals = self.plan.arrivals();
        let end = self.end();
        let mut next_arrival = 0;
        let mut next_sweep = SWEEP_SECONDS;
        let mut events = Events::new();
        let mut scratch = vec![0; 64 << 10];
        self.started = Instant::now();
        if self.plan.pattern == Pattern::Closed {
            self.waiting.resize(self.plan.connections, 0.0);
        }
        loop {
            let now = self.now();
            while next_arrival < arrivals.len() && arrivals[next_arrival] <= now {
                let intended = arrivals[next_arrival];
                self.waiting.push_back(intended);
                if self.is_counted(intended) {
                    self.counts.lateness.push(now - intended);
                }
                next_arrival += 1;
            }
            while !self.waiting.is_empty() {
                let Some(index) = self.free.pop() else { break };
                let intended = self.waiting.pop_front().unwrap_or(now);
                self.begin(index, intended)?;
            }
            if now >= next_sweep {
                self.sweep(now)?;
                next_sweep = now + SWEEP_SECONDS;
            }
            let is_over = next_arrival == arrivals.len() && now >= end;
            if is_over && self.waiting.is_empty() && self.free.len() == self.places.len() {
                return Ok(());
            }
            let wake = arrivals.get(next_arrival).map_or(next_sweep, |&at| at.min(next_sweep));
            events.clear();
            self.poller.wait(&mut events, Some(Duration::from_secs_f64((wake - self.now()).max(0.0))))?;
            for event in events.iter() {
                if event.writable {
                    self.with(event.key, |connection, drive| connection.write(drive.requests, &drive.poller))?;
                }
                if event.readable {
                    self.with(event.key, |connection, _| connection.read(&mut scratch))?;
                }
            }
        }
    }

    fn now(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn end(&self) -> f64 {
        self.plan.warm_up_seconds + self.plan.seconds
    }

    fn is_counted(&self, intended: f64) -> bool {
        intended >= self.plan.warm_up_seconds && intended < self.end()
    }

    fn begin(&mut self, index: usize, intended: f64) -> Result<(), Error> {
        if self.is_counted(intended) {
            self.counts.sent += 1;
        }
        self.places[index].under_way = Some(intended);
        if self.places[index].connection.is_none() {
            match Connection::open(self.plan.address, index, &self.poller) {
                Ok(connection) => self.places[index].connection = Some(connection),
                Err(error) => {
                    self.counts.last_failure = Some(error.to_string());
                    return self.fail(index);
                }
            }
            self.counts.connections_opened += 1;
        }
        let request = self.next_request;
        self.next_request = (request + 1) % self.requests.len();
        self.with(index, |connection, drive| connection.begin(request, drive.requests, &drive.poller))
    }

    /// Lets a connection go on, then does what follows from it.
    fn with<F>(&mut self, index: usize, go_on: F) -> Result<(), Error>
    where
        F: FnOnce(&mut Connection, &Self) -> Result<Progress, Error>,
    {
        // Its request may have been given up earlier in the same turn.
        let Some(mut connection) = self.places[index].connection.take() else { return Ok(()) };
        let progress = go_on(&mut connection, self)?;
        self.places[index].connection = Some(connection);
        match progress {
            Progress::Waiting => Ok(()),
            Progress::Closed => {
                if let Some(connection) = self.places[index].connection.take() {
                    connection.close(&self.poller)?;
                }
                self.fail(index)
            }
            Progress::Answered { status, body, keep } => {
                if !keep && let Some(connection) = self.places[index].connection.take() {
                    connection.close(&self.poller)?;
                }
                self.answered(index, status, &body)
            }
        }
    }

    fn answered(&mut self, index: usize, status: u16, body: &[u8]) -> Result<(), Error> {
        let Some(intended) = self.places[index].under_way.take() else { return Ok(()) };
        let now = self.now();
        let counts = &mut self.counts;
        counts.answered_in_all += 1;
        counts.bytes_received += body.len() as u64;
        let is_ok = (200..300).contains(&status);
        if !is_ok {
            counts.last_failure = Some(String::from_utf8_lossy(&body[..body.len().min(500)]).into_owned());
        }
        if is_ok && now >= self.plan.warm_up_seconds && now < self.end() {
            self.counts.ok_within_span += 1;
        }
        if self.is_counted(intended) {
            *self.counts.statuses.entry(status).or_insert(0) += 1;
            if is_ok {
                self.counts.ok += 1;
                self.counts.latencies.push(now - intended);
                self.counts.runs.extend(run_seconds(&body));
            }
        }
        self.release(index, now);
        Ok(())
    }

    /// The connection is gone. Without a request under way that is the server's good right.
    fn fail(&mut self, index: usize) -> Result<(), Error> {
        if let Some(intended) = self.places[index].under_way.take() {
            if self.is_counted(intended) {
                self.counts.closed += 1;
            }
            self.release(index, self.now());
        }
        Ok(())
    }

    fn release(&mut self, index: usize, now: f64) {
        self.free.push(index);
        if self.plan.pattern == Pattern::Closed && now < self.end() {
            self.waiting.push_back(now);
        }
    }

    /// Gives up what should have been answered by now.
    fn sweep(&mut self, now: f64) -> Result<(), Error> {
        let oldest = now - self.plan.timeout_seconds;
        while self.waiting.front().is_some_and(|&intended| intended < oldest) {
            if let Some(intended) = self.waiting.pop_front()
                && self.is_counted(intended)
            {
                self.counts.sent += 1;
                self.counts.timed_out += 1;
            }
        }
        for index in 0..self.places.len() {
            let Some(intended) = self.places[index].under_way.filter(|&intended| intended < oldest) else { continue };
            self.places[index].under_way = None;
            if let Some(connection) = self.places[index].connection.take() {
                connection.close(&self.poller)?;
            }
            if self.is_counted(intended) {
                self.counts.timed_out += 1;
            }
            self.release(index, now);
        }
        Ok(())
    }
}

/// What Sheaf's JSON says at its end: `"run_ms":0.612`.
fn run_seconds(body: &[u8]) -> Option<f64> {
    const NAME: &[u8] = b"\"run_ms\":";
    let tail = &body[body.len().saturating_sub(256)..];
    let start = NAME.len() + tail.windows(NAME.len()).position(|bytes| bytes == NAME)?;
    let length = tail[start..].iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
    let ms: f64 = std::str::from_utf8(&tail[start..start + length]).ok()?.parse().ok()?;
    Some(ms / 1000.0)
}
