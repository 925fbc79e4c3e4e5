use serde::Deserialize;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// `connections` callers; each sends its next request when the last is answered.
    Closed,
    /// Poisson arrivals at `ratePerS`.
    Poisson,
    /// Poisson arrivals: of every two seconds, half a second at three times the rate and the rest at a third of it.
    Burst,
    /// One arrival every 1/`ratePerS` seconds.
    Even,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// `127.0.0.1:8000`.
    pub address: SocketAddr,
    /// Files that hold one whole HTTP request each; sent in turn.
    pub requests: Vec<PathBuf>,
    pub pattern: Pattern,
    /// Closed: the callers. Otherwise: the most connections; an arrival that finds none free waits, and its wait counts.
    pub connections: usize,
    /// Ignored by the closed pattern.
    #[serde(default)]
    pub rate_per_s: f64,
    /// The measured span, after `warmUpSeconds` of the same load that are not counted.
    pub seconds: f64,
    pub warm_up_seconds: f64,
    /// A request without an answer is given up that long after it was to leave.
    pub timeout_seconds: f64,
    pub seed: u64,
}

impl Plan {
    /// Reads the request files, after a check that the plan is bounded.
    pub fn read_requests(&self) -> Result<Vec<Vec<u8>>, Error> {
        let within = |name: &str, value: f64, least: f64, most: f64| {
            if value >= least && value <= most {
                return Ok(());
            }
            let message = format!("{name} must be from {least} to {most}, got {value}");
            Err(Error::new(ErrorKind::InvalidInput, message))
        };
        within("seconds", self.seconds, 0.1, 600.0)?;
        within("warmUpSeconds", self.warm_up_seconds, 0.0, 60.0)?;
        within("timeoutSeconds", self.timeout_seconds, 0.1, 60.0)?;
        within("connections", self.connections as f64, 1.0, 4096.0)?;
        within("requests", self.requests.len() as f64, 1.0, 1000.0)?;
        if self.pattern != Pattern::Closed {
            within("ratePerS", self.rate_per_s, 0.1, 20_000.0)?;
        }
        if !self.address.ip().is_loopback() {
            let message = format!("address must be on the loopback interface, got {}", self.address);
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.requests.iter().map(std::fs::read).collect()
    }

    /// Seconds from the start at which requests are to leave, in order; none for the closed pattern.
    pub fn arrivals(&self) -> Vec<f64> {
        let span = self.warm_up_seconds + self.seconds;
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut exponential = || -(1.0 - random.f64()).ln();
        let mut arrivals = Vec::new();
        match self.pattern {
            Pattern::Closed => {}
            Pattern::Even => {
                let count = (span * self.rate_per_s).floor() as usize;
                arrivals.extend((0..count).map(|i| i as f64 / self.rate_per_s));
            }
            Pattern::Poisson => {
                let mut at = exponential() / self.rate_per_s;
                while at < span {
                    arrivals.push(at);
                    at += exponential() / self.rate_per_s;
                }
            }
            // Unit-rate arrivals, mapped through the inverse of the cumulated rate of the two phases of each period.
            Pattern::Burst => {
                let calm = 1.5;
                let mut sum = exponential() / self.rate_per_s;
                loop {
                    let period = (sum / 2.0).floor();
                    let within = sum - 2.0 * period;
                    let at = if within < calm / 3.0 { within * 3.0 } else { calm + (within - calm / 3.0) / 3.0 };
                    let at = 2.0 * period + at;
                    if at >= span {
                        break;
                    }
                    arrivals.push(at);
                    sum += exponential() / self.rate_per_s;
                }
            }
        }
        arrivals
    }
}
