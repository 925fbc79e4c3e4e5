use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::BTreeMap;

/// User and system time of this process so far.
pub fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[derive(Serialize, Default)]
pub struct Quantiles {
    p50: f64,
    p90: f64,
    p99: f64,
    p999: f64,
    max: f64,
    mean: f64,
}

impl Quantiles {
    /// Of seconds, in milliseconds; exact, by nearest rank. All 0 without values.
    fn of(mut seconds: Vec<f64>) -> Self {
        if seconds.is_empty() {
            return Self::default();
        }
        seconds.sort_unstable_by(f64::total_cmp);
        let count = seconds.len();
        let at = |share: f64| 1000.0 * seconds[((share * count as f64).ceil() as usize).clamp(1, count) - 1];
        let mean = 1000.0 * seconds.iter().sum::<f64>() / count as f64;
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1.0), mean }
    }
}

/// What happened to the requests that were to leave in the measured span.
#[derive(Default)]
pub struct Counts {
    pub sent: u64,
    pub ok: u64,
    /// Answered 2xx before the span's end, whenever they were to leave.
    pub ok_within_span: u64,
    pub statuses: BTreeMap<u16, u64>,
    pub timed_out: u64,
    pub closed: u64,
    /// Of the 2xx, in seconds.
    pub latencies: Vec<f64>,
    /// Of the 2xx that say it, as `run_ms`: how long the model's run took, in seconds.
    pub runs: Vec<f64>,
    /// How late this program noticed that a request was to leave; waiting for a free connection is not part of it.
    pub lateness: Vec<f64>,
    /// With the warm-up: what the processor time was spent on.
    pub answered_in_all: u64,
    pub connections_opened: u64,
    pub bytes_received: u64,
    pub last_failure: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    seconds: f64,
    sent: u64,
    ok: u64,
    offered_per_s: f64,
    achieved_per_s: f64,
    statuses: BTreeMap<u16, u64>,
    timed_out: u64,
    /// Connections that ended under a request.
    closed: u64,
    latency_ms: Quantiles,
    lateness_ms: Quantiles,
    /// Of the model's runs, as the replies say; absent where they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ms: Option<Quantiles>,
    connections_opened: u64,
    answered_in_all: u64,
    bytes_received: u64,
    /// This program's own, with the warm-up.
    cpu_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<String>,
}

impl Counts {
    pub fn report(self, seconds: f64, cpu_seconds: f64) -> Report {
        Report {
            seconds,
            sent: self.sent,
            ok: self.ok,
            offered_per_s: self.sent as f64 / seconds,
            achieved_per_s: self.ok_within_span as f64 / seconds,
            statuses: self.statuses,
            timed_out: self.timed_out,
            closed: self.closed,
            latency_ms: Quantiles::of(self.latencies),
            lateness_ms: Quantiles::of(self.lateness),
            run_ms: (!self.runs.is_empty()).then(|| Quantiles::of(self.runs)),
            connections_opened: self.connections_opened,
            answered_in_all: self.answered_in_all,
            bytes_received: self.bytes_received,
            cpu_seconds,
            last_failure: self.last_failure,
        }
    }
}
