//! A load generator in one thread: reads a `Plan` as JSON from stdin, loads one HTTP/1.1 server over keep-alive
//! connections, writes a `Report` as JSON to stdout. Latency counts from the moment a request was to leave, so a server
//! that stalls cannot hide the requests that it held back.
mod connection;
mod drive;
mod plan;
mod report;

use std::io::{Error, read_to_string, stdin};

fn main() -> Result<(), Error> {
    let plan: plan::Plan = serde_json::from_str(&read_to_string(stdin())?)?;
    let requests = plan.read_requests()?;
    let report = drive::drive(&plan, &requests)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
