/**
 * The parts of `@nats-io/transport-node` 3.x (or another transport of NATS' JavaScript client) that are used, by their
 * shape: your own connection is passed in, and this library depends on no client.
 */
export interface NatsHeaders {
  /** Status of a message from the server itself: 404, 408, 409, 503; 0 or absent on others. */
  readonly code: number;
  get(name: string): string;
  set(name: string, value: string): void;
}

export interface NatsMessage {
  readonly subject: string;
  readonly reply?: string | undefined;
  readonly data: Uint8Array;
  readonly headers?: NatsHeaders | undefined;
}

export interface NatsSubscription {
  unsubscribe(): void;
  /** Ends the subscription after the messages already delivered. */
  drain(): Promise<void>;
}

export interface NatsConnection {
  readonly info?:
    { readonly max_payload: number; readonly jetstream?: boolean; readonly domain?: string | undefined } | undefined;
  publish(subject: string, payload?: Uint8Array | string, options?: { reply?: string; headers?: NatsHeaders }): void;
  subscribe(
    subject: string,
    options?: { queue?: string; callback?: (error: Error | null, message: NatsMessage) => void },
  ): NatsSubscription;
  request(
    subject: string,
    payload?: Uint8Array | string,
    options?: { timeout: number; headers?: NatsHeaders },
  ): Promise<NatsMessage>;
  flush(): Promise<void>;
  /** Yields `disconnect`, `reconnect` and more, until the connection is closed. */
  status(): AsyncIterable<{ readonly type: string }>;
  isClosed(): boolean;
}

/** Your connection and the client's own constructor of headers. */
export interface NatsClient {
  /**
   * From `connect()`. It stays yours: nothing here closes it. Let it reconnect forever (`maxReconnectAttempts: -1`).
   */
  readonly connection: NatsConnection;
  /** `headers` of the same package. */
  readonly headers: () => NatsHeaders;
}
