// Types of the REST interface of Nous $version. Written by `python -m clients.generate`: change that, not this.

/** What holds for one call, or for all of a client. */
export interface CallOptions {
  /** For an administrator's key: the agent to act for. */
  agent?: string;
  /** Seconds after which the call ends with an answer or a problem. */
  deadline?: number;
  /** The session the call belongs to. */
  session?: string;
  /** Makes a retry safe. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

export interface ClientOptions extends CallOptions {
  /** Where the interface is served; http://127.0.0.1:8420 by default. */
  url?: string;
  /** Made by `nous key create`. */
  key?: string;
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What a failed call was refused for. */
export declare class NousProblem extends Error {
  readonly status: number;
  readonly problem: Problem;
  readonly requestId: string | null;
}

$interfaces

/** One agent's memory over HTTP. A call that fails throws a `NousProblem`. */
export declare class Nous {
  constructor(options?: ClientOptions);
$declared
}
