import type { NatsFrontEnd } from "sheaf/adapters/nats";
import type { WorkerCounts } from "sheaf/internal/nats";
import type { MetricFamily, MetricSample } from "sheaf/internal/metrics";
import type { Models } from "../models/models.ts";
import { counter, gauge } from "../../observe/family.ts";

/** A gateway's metrics of the shared queue, and a worker's metrics of its items. None outside a fleet. */
export function fleetFamilies(models: Models): MetricFamily[] {
  const gateways = models.all.flatMap(({ name, fleet }) =>
    fleet?.frontEnd ? [{ name, frontEnd: fleet.frontEnd }] : [],
  );
  const workers = models.all.flatMap(({ name, fleet, local }) => {
    const { worker } = local?.fleet ?? fleet ?? {};
    return worker === undefined ? [] : [{ name, counts: worker.counts }];
  });
  if (gateways.length === 0 && workers.length === 0) return [];
  const lanes = (of: "pending" | "ackPending" | "redelivered" | "waitingPulls"): MetricSample[] =>
    gateways.flatMap(({ name, frontEnd }) =>
      frontEnd.lastFigures.map((figure) => ({ labels: { batcher: name, lane: figure.lane }, value: figure[of] })),
    );
  const gateway = (value: (frontEnd: NatsFrontEnd<unknown, unknown>) => number): MetricSample[] =>
    gateways.map(({ name, frontEnd }) => ({ labels: { batcher: name }, value: value(frontEnd) }));
  const worker = (of: keyof WorkerCounts): MetricSample[] =>
    workers.map(({ name, counts }) => ({ labels: { batcher: name }, value: counts[of] }));
  const deadLetters = models.all.map(({ name, fleet, local }) => {
    const sides = [fleet?.frontEnd, fleet?.worker, local?.fleet?.worker];
    const value = sides.reduce((sum, side) => sum + (side?.counts.deadLetters ?? 0), 0);
    return { labels: { batcher: name }, value };
  });
  return [
    gauge("sheaf_fleet_pending_items", "Items in the shared queue that wait for a worker.", lanes("pending")),
    gauge("sheaf_fleet_ack_pending_items", "Items of the queue at a worker.", lanes("ackPending")),
    gauge("sheaf_fleet_redelivered_items", "Of these, given out more than once.", lanes("redelivered")),
    gauge("sheaf_fleet_waiting_pulls", "Workers' open requests for items.", lanes("waitingPulls")),
    gauge(
      "sheaf_fleet_workers",
      "Workers that serve the model.",
      gateway((frontEnd) => frontEnd.workers().length),
    ),
    gauge(
      "sheaf_fleet_other_workers",
      "Workers of the model's name that serve another version or another model.",
      gateway((frontEnd) => frontEnd.otherWorkers().length),
    ),
    gauge(
      "sheaf_fleet_queue_available",
      "1 while the queue takes items.",
      gateway(({ isConnected, unavailableReason }) => +(isConnected && unavailableReason === undefined)),
    ),
    counter(
      "sheaf_fleet_late_replies_total",
      "Replies that came for requests that had ended.",
      gateway(({ counts }) => counts.lateReplies),
    ),
    counter(
      "sheaf_fleet_republished_items_total",
      "Items published again because the queue had not answered.",
      gateway(({ counts }) => counts.republished),
    ),
    counter("sheaf_fleet_dead_letters_total", "Items given up by this process.", deadLetters),
    counter("sheaf_fleet_delivered_items_total", "Items this worker took.", worker("delivered")),
    counter("sheaf_fleet_redeliveries_total", "Of these, taken before.", worker("redelivered")),
    counter("sheaf_fleet_handed_back_items_total", "Items given back to the queue.", worker("handedBack")),
    counter("sheaf_fleet_expired_items_total", "Items too old to run.", worker("expired")),
    counter("sheaf_fleet_cancelled_items_total", "Items whose caller had gone.", worker("cancelled")),
  ];
}
